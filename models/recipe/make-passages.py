#!/usr/bin/env python3
"""Write models/passages.jsonl: short passages about watching films, put together from sentences
written for this project. They are prompts for the query rules (start after a period, end at a
period), so each has well over 64 tokens and its mood stays open.

    python3 models/recipe/make-passages.py > models/passages.jsonl
"""
import json
import random

OPEN = [
    "I went to the cinema on a rainy evening with my {kin}.",
    "My {kin} picked this film because of the poster.",
    "We had an hour to spare before dinner and put on a film.",
    "The film was on late at night and I could not sleep.",
    "A friend lent me the disc last {time} and would not say a word about it.",
    "I found this one at the bottom of a box in a second-hand shop.",
    "Nobody at work had heard of this film when I brought it up.",
    "I had read the book as a child and was curious about the film.",
]
PLACE = [
    "The story takes place in a small town by the {water}.",
    "It begins on a train that crosses the country at night.",
    "Most of it happens inside one old house with too many doors.",
    "The first scenes show a {job} at work early in the morning.",
    "It opens with a long shot of an empty street.",
    "The camera follows a {job} through a crowded market.",
    "At the start we only hear a voice and the sound of the {water}.",
    "It is set in a city that the film never names.",
]
PEOPLE = [
    "The main character is a {job} who has just lost a brother.",
    "Two sisters share a secret that nobody else in town knows.",
    "An old {job} takes in a boy who will not speak.",
    "There is a {job}, a detective and a woman who may be lying to both.",
    "The hero used to be a {job} and now sells tickets.",
    "A young {job} moves in next door and everything changes.",
    "The father says little, and the {kin} says far too much.",
    "Each of the four friends wants something different from the trip.",
]
TURN = [
    "Then a letter arrives that was posted ten years before.",
    "Halfway through, the film turns into something else.",
    "One day the money is gone and so is the {job}.",
    "The second half moves to the {water} and slows down.",
    "After the wedding nobody is where they should be.",
    "A storm keeps them all in the same room for a night.",
    "The police come to ask the same question three times.",
    "What the {kin} finds in the cellar I will not give away.",
]
CRAFT = [
    "There is almost no music until the last part.",
    "The director made only one film before this one.",
    "Much of it was shot with the light of the day.",
    "The actors were told their lines on the morning of each scene.",
    "It runs for a little more than two hours.",
    "The colours are those of an old photograph.",
    "Some of the dialogue is in a language I do not speak.",
    "The editing jumps back and forth between two {time}s.",
]
VIEW = [
    "People in the row behind us talked about it all the way out.",
    "My {kin} and I did not agree about the ending.",
    "I looked at the clock once, and then not again.",
    "I thought about it again on the way home.",
    "It is the kind of film that people either finish or leave.",
    "There were perhaps twelve of us in the room.",
    "I have seen it twice now, once with the sound turned low.",
    "You may know the story already, since it has been told before.",
]
WORDS = {
    "kin": ["brother", "sister", "mother", "uncle", "cousin", "neighbour"],
    "time": ["summer", "winter", "year", "spring", "week"],
    "water": ["sea", "river", "lake", "harbour"],
    "job": ["teacher", "baker", "doctor", "driver", "painter", "nurse", "clockmaker", "soldier"],
}


def sentence(rng, bank):
    return rng.choice(bank).format(**{k: rng.choice(v) for k, v in WORDS.items()})


def main():
    rng = random.Random(20261121)
    for _ in range(320):
        order = [OPEN, PLACE, PEOPLE, TURN, CRAFT, VIEW]
        middle = [PLACE, PEOPLE, TURN, CRAFT, VIEW, PEOPLE]
        rng.shuffle(middle)
        parts = []
        for bank in order[:1] + middle + order[2:]:
            while (s := sentence(rng, bank)) in parts:
                pass
            parts.append(s)
        print(json.dumps({"text": " ".join(parts)}))


main()
