"""Makes random fragments of chat templates from a seed: expressions and statements with values of all types. Most
fragments are well typed, so that most of them render; some are not, so that errors are compared too.
"""
import random

VARS = {
    "s": "Hello wORLD", "u": "\u00c9mile \u00df\u0149 \u03a3\u0391\u03a3 \ufb01x \u0130\u0131 \u4e2d\u6587\u00a0e\u0301 \u01c6", "empty": "",
    "sp": "  a\tb \u2028c\u0085d\r\ne \x1c f  ", "lines": "one\n  two\r\n\nthree\u2029four\x0bfive", "num": "42", "neg": " -7 ", "flo": "3.25",
    "html": "<a href='x'>&\"</a>", "csv": "a,b,,c", "w": "the quick-brown (fox) jumps [over] it's", "hex": "0x1F", "fmt": "%s and %d",
    "i": 7, "z": 0, "m": -3, "top": 9223372036854775807, "low": -9223372036854775807, "f": 2.5, "nf": -0.0, "tiny": 1.5e-7, "large": 1.25e22,
    "t": True, "no": False, "n": None, "l": [3, 1, 2], "ls": ["b", "A", "c", "a", "B"], "le": [], "lm": [1, "a", None, True, 2.5, [1], {"k": 1}],
    "ll": [[1, "x"], [2, "y"]], "lf": [2.5, -1.5, 0.0], "d": {"b": 1, "a": [1, 2], "c": {"x": "\u00e9"}}, "de": {}, "ds": {"B": "x", "a": "Y"},
    "rows": [{"role": "user", "n": 2, "tag": "a"}, {"role": "Assistant", "n": 1, "tag": "b"}, {"role": "user", "n": 3}],
    "tree": [{"v": "r", "kids": [{"v": "k", "kids": []}, {"v": "q", "kids": [{"v": "z", "kids": []}]}]}, {"v": "o", "kids": []}],
    "messages": [{"role": "system", "content": " S\n"}, {"role": "user", "content": "Q\u00e9\u4e2d"}, {"role": "assistant", "content": None, "tool_calls": [
        {"function": {"name": "f", "arguments": {"x": 1.5, "y": [True, None]}}}]}],
}
STRINGS = ["''", "'a'", "'b'", "\"it's\"", "' x '", "'\\n'", "'a\\tb'", "'\u00e9'", "'\\u00df'", "'\\x41'", "'A-b_c'", "'1'", "'l'", "'\u4e2d'", "'%'", "'{}'", "'<b>'",
           "'\\101'", "'a\\\nb'", "'\\q'", "'\\U0001f600'"]
INTS = ["0", "1", "2", "3", "-1", "10", "0x1F", "0b101", "0o17", "1_000", "5"]
BIGS = ["9223372036854775808", "123456789012345678901234567890", "-18446744073709551617", "2 ** 64", "10 ** 30", "top + 1", "low - 2"]
FLOATS = ["1.5", "0.1", "-2.25", "1e3", "2.675", "1e-5", "3.0", "1_0.5", "1e16", "123456.789"]
STR_METHODS0 = ("upper lower title capitalize casefold swapcase strip lstrip rstrip splitlines split isalpha isdigit isalnum isspace islower isupper istitle isascii "
                "isdecimal isidentifier isprintable isnumeric").split()


class Maker:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.names = []  # of variables that statements have set

    def pick(self, *options):
        return self.r.choice(options)

    def one(self, chance):
        return self.r.random() < chance

    # ---- values by type ----

    def any(self, d):
        return self.r.choice([self.str, self.int, self.float, self.bool, self.list, self.dict, self.odd])(d)

    def odd(self, d):
        return self.pick("nothing", "none", "n", "t", "no", "(1, 'a')", "()", "range(3)", "namespace(a=1)", "dict(a=1)", "range", "[nothing]", "(none,)",
                         "l | map('string')", "d.items()", "d.keys()", "nothing.x", "messages[9]", "raise_exception", "True", "s | safe")

    def wrong(self, make, d):
        return self.any(d) if self.one(.04) else make(d)

    def str(self, d=2):
        r = self.r
        if d <= 0 or self.one(.25):
            return self.pick(*STRINGS, "s", "u", "sp", "lines", "w", "csv", "html", "num", "empty", "messages[1].content", "s", "u", "sp", "fmt", *self.names)
        S = lambda: self.wrong(self.str, d - 1)
        N = lambda: self.wrong(self.small, 0)
        x = self.operand(S())
        return self.pick(
            lambda: f"{x}.{r.choice(STR_METHODS0)}()", lambda: f"{x}.{r.choice(STR_METHODS0[:9])}()",
            lambda: f"{x}.{self.pick('strip', 'lstrip', 'rstrip')}({self.pick(S(), 'none', repr(r.choice(['ab', ' ', 'H', '<>'])))})",
            lambda: f"{x}.replace({S()}, {S()}{self.pick('', ', 1', ', -1', ', 0')})", lambda: f"{x}.{self.pick('center', 'ljust', 'rjust')}({N()}{self.pick('', ', ' + S())})",
            lambda: f"{x}.zfill({N()})", lambda: f"{x}.expandtabs({self.pick('', '4', 'tabsize=2', '0')})", lambda: f"{x}.{self.pick('removeprefix', 'removesuffix')}({S()})",
            lambda: f"{x}.join({self.wrong(self.strs, d - 1)})", lambda: self.formatted(d), lambda: self.formatted(d),
            lambda: f"{x} {self.pick('+', '~')} {self.operand(S())}", lambda: f"{x} * {self.operand(N())}", lambda: f"{x} ~ {self.operand(self.any(d - 1))}",
            lambda: f"{x}[{self.small(0)}]", lambda: f"{x}[{self.slice()}]", lambda: f"{self.operand(self.any(d - 1))} | string", lambda: f"{self.operand(self.any(d - 1))} | tojson{self.tojson()}",
            lambda: f"{x} | {self.pick('upper', 'lower', 'title', 'capitalize', 'trim', 'reverse', 'e', 'escape', 'forceescape', 'safe', 'string', 'first', 'last', 'striptags', 'urlencode')}",
            lambda: f"{x} | {self.pick('upper', 'lower', 'title', 'capitalize')}", lambda: f"{x} | trim({S()})",
            lambda: f"{x} | replace({S()}, {S()}{self.pick('', ', 1', ', count=2')})", lambda: f"{x} | center({self.pick('', '9', 'width=12', '3')})",
            lambda: f"{x} | indent{self.pick('', '(2)', '(width=3, first=true)', '(2, true, true)', '(blank=true)', chr(40) + repr('> ') + ')')}",
            lambda: f"{x} | truncate({self.pick('5', '9, true', '6, false', '5, true, ' + repr('..'), '5, true, ' + repr('!') + ', 0', 'length=7, leeway=1', '300', '2')})",
            lambda: f"{x} | wordwrap({self.pick('', '5', '8, false', 'width=6')})",
            lambda: f"{self.operand(self.list(d - 1))} | join{self.pick('', '(' + S() + ')', '(d=' + S() + ')')}", lambda: f"rows | join({S()}, attribute={self.pick('role', 'n', 'tag')!r})",
            lambda: f"{x} | default({self.any(d - 1)}{self.pick('', ', true', ', boolean=true')})", lambda: f"{x} if {self.bool(d - 1)} else {S()}",
            lambda: f"{x} {self.pick('or', 'and')} {S()}", lambda: f"{self.operand(self.num(d - 1))} | filesizeformat{self.pick('', '(true)')}", lambda: f"{self.dict(d - 1)} | xmlattr",
            lambda: f"{x} | attr({self.pick('upper', 'x')!r})", lambda: f"{self.dict(d - 1)} | attr('a')", lambda: f"({x}, {S()}) | join('-')", lambda: f"{x} | d",
            lambda: f"cycler({S()}, {S()}).{self.pick('next()', 'current')}", lambda: f"{x}.partition({S()})[{self.pick('0', '1', '2')}]", lambda: f"{x}.rpartition({S()})[{self.pick('0', '2')}]",
            lambda: f"{x} | {self.pick('trim', 'trim', 'trim', 'pprint', 'nope', 'urlize')}",
        )()

    def operand(self, text):
        return text if text.replace("_", "").isalnum() or text[0] in "'\"[{" and text[-1] in "'\"]}" and " " not in text else f"({text})"

    def tojson(self):
        return self.pick("", "", "", "(indent=2)", "(sort_keys=true)", "(ensure_ascii=true)", "(separators=(',', ':'))", "(indent='\\t')", "(false, 1)", "(indent=none)", "(nope=1)")

    def slice(self):
        part = lambda: self.pick("", "", "0", "1", "2", "-1", "-2", "9", "-9", "none")
        return f"{part()}:{part()}{self.pick('', '', ':-1', ':2', ':')}"

    def formatted(self, d):
        S, I, F, A = lambda: self.str(d - 1), lambda: self.num(d - 1), lambda: self.float(d - 1), lambda: self.any(d - 1)
        spec = self.pick("s", "d", "i", "r", "x", "X", "o", "f", ".2f", "5d", "-6d|", "05d", "+d", "e", ".3e", "g", ".2g", "G", "%", "c", "10s|", "-10s|", ".2s", "a", "#x", "u", "F", " d", "+.1f")
        width, kind = self.pick("", "", "5", "<8", ">8", "^9", "*^9", "08", "+", " ", "+08"), self.pick("", "", "", "s", "d", "x", "b", "o", "e", "f", ".2f", "g", ".3g", "%", ".1%", ",", "_", ",.2f", "c", "n", "#x", "#b", "X")
        value = {True: self.num, False: self.any}[spec[-1] in "dixXofeEgGFu" and self.one(.9)](d - 1)
        field = {True: self.num, False: self.any}[kind != "" and kind != "s" and self.one(.9)](d - 1)
        q = lambda t: "'" + t.replace("|", "") + "'"
        return self.pick(
            lambda: f"{q('%' + spec)} % {self.operand(value)}", lambda: f"{q('%' + spec)} | format({value})", lambda: f"'%s-%s' % ({A()}, {A()})", lambda: f"'%(a)s %(b)s' % {{'a': {A()}, 'b': {S()}}}",
            lambda: f"'%s %s' | format({A()}, {S()})", lambda: f"'%(x)s' | format(x={A()})", lambda: f"fmt % ({S()}, {I()})", lambda: f"{q('{:' + width + kind + '}')}.format({field})",
            lambda: f"{q('{:' + width + kind + '}')}.format({field})", lambda: f"{q('{:' + width + '}')}.format({A()})",
            lambda: f"'{{}} {{}}'.format({A()}, {A()})", lambda: f"'{{1}}{{0}}'.format({A()}, {S()})", lambda: f"'{{a}}{{{{'.format(a={A()})", lambda: f"'{{0.b}}{{0[a]}}'.format(d)", lambda: f"'{{0[1]}}'.format({self.list(d - 1)})",
            lambda: f"'{{!r}}'.format({A()})", lambda: f"'{{!r:>9}}'.format({S()})", lambda: f"'{{a}}'.format(**{{'a': {A()}}})", lambda: f"'{{}}-{{}}'.format(*[{A()}, {S()}])", lambda: f"'{{:{{}}}}'.format({S()}, 7)",
            lambda: f"'%%' % ()", lambda: f"'{{b}}'.format_map(d)", lambda: f"'{{}}'.format()", lambda: f"'%d' % {S()}", lambda: f"'%*d' % (5, {I()})", lambda: f"'a' % {A()}",
        )()

    def small(self, d=0):
        return self.pick("0", "1", "2", "3", "-1", "5", "i", "m", "z", "12", "t")

    def num(self, d=1):
        return self.pick(self.int, self.int, self.float)(d)

    def int(self, d=2):
        if d <= 0 or self.one(.3):
            return self.pick(*INTS, "i", "z", "m", "top", "low", "t", self.r.choice(BIGS), self.r.choice(BIGS))
        I, S, L = lambda: self.operand(self.wrong(self.int, d - 1)), lambda: self.operand(self.wrong(self.str, d - 1)), lambda: self.operand(self.wrong(self.list, d - 1))
        return self.pick(
            lambda: f"{I()} {self.pick('+', '-', '*', '//', '%', '+', '-')} {I()}", lambda: f"{I()} ** {self.pick('2', '3', '0', '1', '-1', '5')}", lambda: f"-{I()}", lambda: f"+{I()}", lambda: f"{I()} | abs",
            lambda: f"{S()} | length", lambda: f"{L()} | {self.pick('length', 'count', 'sum', 'max', 'min', 'first', 'last')}", lambda: f"{self.ints(d - 1)} | {self.pick('sum', 'max', 'min')}",
            lambda: f"{self.ints(d - 1)} | sum(start={self.int(0)})", lambda: f"rows | sum({self.pick('attribute=', '')}'n'{self.pick('', ', 10')})", lambda: f"{self.any(d - 1)} | int{self.pick('', '(7)', '(default=none)')}",
            lambda: f"{self.pick(repr('42'), repr(' 1_0 '), 'num', 'neg', repr('1e3'), repr('-0'), repr('1__0'), repr('+5'), 'flo', repr('12.9'), repr('99999999999999999999'), repr('0x1F'))} | int",
            lambda: f"{self.pick(repr('11'), 'hex', repr('zz'), repr('0b11'), repr('17'))} | int(base={self.pick('2', '16', '36', '8', '0')})", lambda: f"{self.num(d - 1)} | int", lambda: f"{S()} | wordcount",
            lambda: f"{S()}.{self.pick('find', 'rfind', 'index', 'rindex', 'count')}({S()}{self.pick('', '', ', 1', ', 1, 3', ', -2', ', none, 2')})", lambda: f"{L()}.{self.pick('count', 'index')}({self.any(0)})",
            lambda: f"{I()} if {self.bool(d - 1)} else {I()}", lambda: f"{L()}[{self.small()}]", lambda: f"{self.int(0)} | round", lambda: f"{I()} | round(-1)",
        )()

    def float(self, d=2):
        if d <= 0 or self.one(.3):
            return self.pick(*FLOATS, "f", "nf", "tiny", "large")
        F, I = lambda: self.operand(self.wrong(self.float, d - 1)), lambda: self.operand(self.int(d - 1))
        return self.pick(
            lambda: f"{F()} {self.pick('+', '-', '*', '/', '//', '%')} {self.pick(F, I)()}", lambda: f"{I()} / {I()}", lambda: f"{I()} {self.pick('+', '-', '*', '/', '//', '%')} {F()}", lambda: f"-{F()}", lambda: f"{F()} | abs",
            lambda: f"{F()} ** {self.pick('2', '0', '-1', '0.5')}", lambda: f"{F()} | round{self.pick('', '(1)', '(2)', '(0)', '(1, ' + repr('floor') + ')', '(method=' + repr('ceil') + ')', '(-1)', '(3)')}",
            lambda: f"{self.pick(repr('1.5'), repr(' 2e3 '), repr('nan'), repr('inf'), repr('x'), repr('1_0.5'), 'flo', repr('-0'), repr('infinity'), repr('1.'), repr('.5'))} | float{self.pick('', '(7)', '(default=none)')}",
            lambda: f"{self.any(d - 1)} | float", lambda: f"{self.pick('lf', '[1, 2.5]')} | {self.pick('sum', 'max', 'min')}",
        )()

    def bool(self, d=2):
        if d <= 0 or self.one(.2):
            return self.pick("true", "false", "t", "no", "True")
        A, N, S = lambda: self.operand(self.any(d - 1)), lambda: self.operand(self.num(d - 1)), lambda: self.operand(self.str(d - 1))
        compare = lambda: self.pick("<", "<=", ">", ">=", "==", "!=")
        tests = ("defined undefined none string mapping iterable sequence boolean true false number integer float callable lower upper escaped filter test").split()
        return self.pick(
            lambda: f"{N()} {compare()} {N()}", lambda: f"{S()} {compare()} {S()}", lambda: f"{A()} {self.pick('==', '!=')} {A()}", lambda: f"{N()} {compare()} {N()} {compare()} {N()}", lambda: f"{A()} {compare()} {A()}",
            lambda: f"{S()} {self.pick('in', 'not in')} {S()}", lambda: f"{A()} in {self.operand(self.list(d - 1))}", lambda: f"{S()} in {self.operand(self.dict(d - 1))}", lambda: f"not {self.bool(d - 1)}",
            lambda: f"{self.bool(d - 1)} {self.pick('and', 'or')} {self.bool(d - 1)}", lambda: f"{A()} is {self.pick('', '', 'not ')}{self.r.choice(tests)}", lambda: f"{A()} is {self.r.choice(tests)}",
            lambda: f"{self.pick('raise_exception', 'range', 'namespace', 'dict', 'cycler', 'joiner', 'lipsum', 'nothing', 's', 's.upper', 'd.items', 'l.append', 'd.b')} is {self.pick('defined', 'callable', 'undefined')}",
            lambda: f"{N()} is {self.pick('odd', 'even')}", lambda: f"{N()} is divisibleby {self.pick('2', '3', '(0)', '1.5')}", lambda: f"{A()} is {self.pick('eq', 'ne', 'equalto', 'sameas')} {self.pick('none', 'true', '1', repr('a'), '(' + self.any(0) + ')')}",
            lambda: f"{N()} is {self.pick('gt', 'lt', 'ge', 'le', 'greaterthan', 'lessthan')}({N()})", lambda: f"{A()} is in {self.pick('l', 'ls', 's', 'd', '(1, 2)')}", lambda: f"{self.pick(repr('upper'), repr('nope'), repr('odd'))} is {self.pick('filter', 'test')}",
            lambda: f"{S()}.{self.pick('startswith', 'endswith')}({self.pick(S(), '(' + S() + ', ' + S() + ')')}{self.pick('', '', ', 1', ', 0, 2', ', -1')})", lambda: f"{A()} is {self.pick('string', 'mapping')} and {A()} is not none",
        )()

    def ints(self, d=1):
        return self.pick("l", "[1, 2, 3]", "range(4)", "range(5, 0, -2)", "[top, 1]", "(3, 2)", "[1, 2.5]")

    def strs(self, d=1):
        return self.pick("ls", "['x', 'y']", "('a', 'b')", "csv.split(',')", "'abc'", "ds", "d.keys()", f"{self.operand(self.str(d - 1))}.split()", "[s | safe, html]")

    def list(self, d=2):
        if d <= 0 or self.one(.25):
            return self.pick("l", "ls", "le", "lm", "ll", "lf", "rows", "messages", "[1, 2]", "['a']", "(1, 'b')", "[]", "range(3)", "()", "range(1, 9, 3)", "(1,)")
        L, A, S = lambda: self.operand(self.wrong(self.list, d - 1)), lambda: self.any(d - 1), lambda: self.operand(self.wrong(self.str, d - 1))
        attr = lambda: self.pick("role", "n", "tag", "x")
        return self.pick(
            lambda: f"[{A()}, {A()}]", lambda: f"({A()}, {A()})", lambda: f"{L()} + {L()}", lambda: f"{L()} * {self.pick('2', '0', '-1')}", lambda: f"{L()}[{self.slice()}]", lambda: f"{L()} | list", lambda: f"{S()} | list",
            lambda: f"{L()} | reverse | list", lambda: f"{L()} | sort{self.pick('', '(reverse=true)', '(true, true)', '(case_sensitive=true)')}", lambda: f"{self.strs(d - 1)} | sort{self.pick('', '(case_sensitive=true)', '(reverse=true)')}",
            lambda: f"rows | sort(attribute={self.pick('n', 'role', 'role,n', 'n,role')!r})", lambda: f"{L()} | unique | list", lambda: f"{self.strs(d - 1)} | unique{self.pick('', '(true)')} | list", lambda: f"rows | unique(attribute='role') | list",
            lambda: f"{self.strs(d - 1)} | map({self.pick('upper', 'lower', 'title', 'length', 'trim', 'string', 'first')!r}) | list", lambda: f"rows | map(attribute={attr()!r}{self.pick('', ', default=' + self.any(0))}) | list",
            lambda: f"{L()} | map({self.pick('string', 'tojson', 'default', 'int', 'abs')!r}) | list", lambda: f"ls | map('replace', {S()}, {S()}) | list", lambda: f"{L()} | select | list", lambda: f"{L()} | {self.pick('select', 'reject')}({self.pick('odd', 'string', 'none', 'number', 'defined', 'mapping')!r}) | list",
            lambda: f"l | {self.pick('select', 'reject')}({self.pick('gt', 'eq', 'divisibleby', 'in', '>', '==')!r}, {self.pick('2', 'l')}) | list", lambda: f"rows | {self.pick('selectattr', 'rejectattr')}({attr()!r}{self.pick('', ', ' + repr('defined'), ', ' + repr('eq') + ', ' + repr('user'), ', ' + repr('in') + ', [1, 2]', ', ' + repr('gt') + ', 1')}) | list",
            lambda: f"{L()} | batch({self.pick('2', '3', '2, 0', 'linecount=2, fill_with=' + repr('x'), '1')}) | list", lambda: f"{L()} | slice({self.pick('2', '3', '3, ' + repr('x'), '1')}) | list",
            lambda: f"rows | groupby({self.pick('role', 'n', 'tag')!r}{self.pick('', ', default=' + repr('b'), ', case_sensitive=true')})", lambda: f"rows | groupby('role') | map(attribute={self.pick('grouper', 'list', '0', '1')!r}) | list",
            lambda: f"{S()}.split({self.pick('', S(), 'none, 1', 'none', 'maxsplit=1', repr(',') + ', 1', 'sep=' + repr('l'))})", lambda: f"{S()}.rsplit({self.pick('', S(), 'none, 1', 'none', 'maxsplit=2', repr(',') + ', 1', 'none, 0')})", lambda: f"{S()}.splitlines({self.pick('', 'true', 'keepends=true', 'false')})",
            lambda: f"{S()}.{self.pick('partition', 'rpartition')}({S()})", lambda: f"{self.operand(self.dict(d - 1))}.{self.pick('items', 'keys', 'values')}() | list", lambda: f"{self.operand(self.dict(d - 1))} | items | list",
            lambda: f"{self.operand(self.dict(d - 1))} | dictsort{self.pick('', '(reverse=true)', '(by=' + repr('value') + ')', '(true)', '(false, ' + repr('value') + ')')}", lambda: f"{self.operand(self.dict(d - 1))} | list", lambda: f"{L()} if {self.bool(d - 1)} else {L()}", lambda: f"[*{L()}]" if self.one(.1) else L(),
            lambda: f"{L()} | {self.pick('reverse', 'unique', 'select', 'batch(2)')}", lambda: f"range({self.pick('3', '2, 6', '5, 1, -1', 'i', '-2', '1, 2, 0', '200000')})",
            lambda: f"none | {self.pick('select', 'map(' + repr('upper') + ')', 'selectattr(' + repr('x') + ')', 'reject')} | list", lambda: f"{L()}.copy()", lambda: f"ll | map('first') | list", lambda: f"ll | map(attribute={self.pick('0', '1', '7')}) | list",
        )()

    def dict(self, d=2):
        if d <= 0 or self.one(.3):
            return self.pick("d", "de", "ds", "{}", "{'a': 1}", "rows[0]", "messages[1]", "{1: 'x', 'b': 2}", "{none: 1, true: 2, 2.5: 3}", "{(1, 2): 'p'}")
        A, S = lambda: self.any(d - 1), lambda: self.str(d - 1)
        return self.pick(
            lambda: f"{{{S()}: {A()}, 'k': {A()}}}", lambda: f"{{{self.int(0)}: {A()}, {self.float(0)}: {A()}}}", lambda: f"dict(a={A()}, b={A()})", lambda: f"dict({self.pick('d', 'ds', '[(1, 2)]', 'll', 'de')}{self.pick('', ', z=' + A())})", lambda: f"dict(**{self.pick('d', 'ds')})",
            lambda: "d.c", lambda: "messages[2].tool_calls[0].function", lambda: f"{self.pick('d', 'ds')}.copy()", lambda: f"{{{A()}: 1}}", lambda: f"{self.dict(d - 1)} if {self.bool(d - 1)} else {self.dict(d - 1)}",
            lambda: f"d.get({self.pick(repr('c'), repr('x'), repr('c') + ', {}', repr('z') + ', ' + A(), '1')})", lambda: f"{{1: {A()}}}.get({self.pick('1', 'true', '1.0', '2')})", lambda: f"dict.fromkeys({self.strs(0)}{self.pick('', ', 1')})", lambda: f"{{1: {A()}, '1': 2}}[{self.pick('1', '1.0', repr('1'), 'true', '[]')}]",
        )()

    # ---- statements ----

    def expression(self, d=2):
        return self.r.choice([self.str, self.str, self.str, self.int, self.int, self.float, self.bool, self.list, self.list, self.dict, self.any])(d)

    def out(self, d=1):
        return "{{ " + self.expression(d) + " }}"

    def tag(self, text):
        return self.pick("{% ", "{% ", "{%- ", "{% ", "{%+ ") + text + self.pick(" %}", " %}", " -%}", " %}", " +%}")

    def text(self):
        return self.pick("", "", "x", " ", "\n", "  \n", "a\n  ", "\t", "y ", "\n\n")

    def body(self, d):
        return self.text() + (self.pick(self.out, self.out, self.statement)(d) if d > 0 else self.out(1)) + self.text()

    def loop(self):
        return "{{ loop." + self.pick("index", "index0", "first", "last", "length", "revindex", "revindex0", "depth", "depth0", "previtem", "nextitem", "cycle('a', 'b')", "cycle(1, 2, 3)", "changed(x)", "changed(loop.index > 2)",
                                      "changed(x, 1)", "nope", "previtem is defined", "nextitem is defined") + " }}"

    def statement(self, d=2):
        t, r = self.tag, self.r
        B = lambda: self.body(d - 1)
        name = self.pick("x", "y", "s", "v")
        seq = self.list(1)
        return self.pick(
            lambda: t(f"if {self.bool(1)}") + B() + self.pick("", t(f"elif {self.any(1)}") + B()) + self.pick("", t("else") + B()) + t("endif"),
            lambda: t(f"for x in {seq}{self.pick('', '', ' if ' + self.pick('x', 'x is string', 'x is odd', 'loop is defined'))}") + "{{ x }}" + self.loop() + self.text() + self.pick("", t("else") + B()) + t("endfor"),
            lambda: t(f"for x in {seq}") + self.loop() + self.pick("", t(f"if loop.index == 2") + t(self.pick("break", "continue")) + t("endif")) + "{{ x }}" + t("endfor"),
            lambda: t(f"for {self.pick('k, v', '(k, v)', 'k,v')} in {self.pick('ll', 'd.items()', 'd | dictsort', 'd | items', 'rows | groupby(' + repr('role') + ')', '[(1, 2)]', 'l', '[' + repr('ab') + ']')}") + "{{ k }}={{ v }};" + t("endfor"),
            lambda: t(f"for {self.pick('(a, b), c', 'a, (b, c)')} in {self.pick('[((1, 2), 3)]', '[(1, (2, 3))]', '[(' + repr('ab') + ', 3)]')}") + "{{ a }}{{ b }}{{ c }}" + t("endfor"),
            lambda: t(f"for x in {self.pick('1, 2', repr('a') + ', s', '1,')}") + "{{ x }}" + t("endfor"), lambda: t("for c in " + self.str(1)) + "{{ c }}," + t("endfor"),
            lambda: t(f"set {name} = {self.expression(1)}") + "{{ " + name + " }}" + B(), lambda: t(f"set {self.pick('a, b', '(a, b)')} = {self.pick('1, 2', 'll[0]', repr('ab'), 'l', '(s, i)', self.list(1))}") + "{{ a }}{{ b }}",
            lambda: t(f"set {name}{self.pick('', '', ' | upper', ' | trim | length', ' | replace(' + repr('a') + ', ' + repr('b') + ')')}") + B() + t("endset") + "{{ " + name + " }}|{{ " + name + " is string }}",
            lambda: t("set ns = namespace(" + self.pick("a=1", "d, a=0", "{'a': 1}", "a=1, b=s", "") + ")") + t(f"for x in {seq}") + t("set ns.a = " + self.pick("x", "ns.a ~ x", "loop.index", "ns.a + 1")) + t("endfor") + "{{ ns.a }}{{ ns.b }}{{ ns['a'] }}" + self.pick("", "{{ ns }}"),
            lambda: t(f"macro m({self.pick('', 'a', 'a, b=2', 'a, b=a', 'a=s', 'b=none, c=[1]')})") + "[{{ a }}{{ b }}" + self.pick("", "{{ varargs }}", "{{ kwargs }}", "{{ varargs }}{{ kwargs }}", "{{ caller() }}", "{{ caller(1) if caller }}", "{{ m.name }}", "{{ loop }}") + "]" + t("endmacro")
            + "{{ m(" + self.pick("", "1", "1, 2", "a=1", "1, b=3", "1, 2, 3", "1, z=4", "*l", "**ds", "1, *[2]", "b=1, a=2", "1, a=2") + ") }}",
            lambda: t("macro m(a='A')") + "<{{ caller(" + self.pick("", "a", "1, 2", "a, b=3") + ") }}{{ a }}>" + t("endmacro") + t(f"call{self.pick('', '(x)', '(x, y=5)', '()')} m({self.pick('', '7', 'a=i')})") + B() + "{{ x }}{{ y }}" + t("endcall"),
            lambda: t(f"filter {self.pick('upper', 'trim', 'replace(' + repr('a') + ', ' + repr('b') + ')', 'title | trim', 'length', 'indent(2, true)', 'e', 'nope')}") + B() + t("endfilter"),
            lambda: t(f"with {self.pick('', 'x=1', 'x=1, y=2', 'x=s, y=x', 'i=i + 1', 'a=1, b=a')}") + "{{ x }}{{ y }}{{ i }}{{ a }}{{ b }}" + B() + t("endwith") + "{{ x }}{{ i }}",
            lambda: self.pick("{% raw %}", "{%- raw %}", "{% raw -%}", "{%- raw -%}", "a {% raw %}\n", "{%raw%}") + self.pick("{{ x }}", "{% if %}", "{# c #}", " {{ ' ", "\n {% endfor %} \n", "") + self.pick("{% endraw %}", "{%- endraw %}", "{% endraw -%}", " {%- endraw -%}\n b", "  {% endraw %}\n", "{%endraw%} c"),
            lambda: t("for x in tree recursive") + "({{ x.v }}" + self.pick("", "{{ loop.depth }}", "{{ loop.index }}", "{{ loop.depth0 }}{{ loop.last }}") + "{{ loop(x.kids) }})" + t("endfor"),
            lambda: t("generation") + B() + t("endgeneration"), lambda: "{# " + self.pick("c", "x -", "\n", "{{ 1 }}") + self.pick(" #}", " -#}", "#}\n") + self.text() + self.out(1),
            lambda: t("set x = 1") + t(f"for y in l") + t("set x = x + y") + "{{ x }}" + t("endfor") + "{{ x }}{{ y }}", lambda: t("set q = " + self.pick("joiner(', ')", "joiner()", "joiner('|')")) + "{{ q() }}{{ q() }}{{ q() }}",
            lambda: t("set c = cycler(" + self.pick("1, 2", "'a', 'b', 'c'", "*l") + ")") + "{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.next() }}" + self.pick("", "{{ c.reset() }}{{ c.next() }}"),
            lambda: t(f"set g = l | map('string')") + "{{ g | list }}{{ g | list }}{{ 1 if g }}", lambda: t("if " + self.pick("rows | selectattr('nope')", "le | map('upper')", "le | list", "d.items()", "range(0)", "namespace()")) + "yes" + t("else") + "no" + t("endif"),
            lambda: t(f"macro a(n)") + "{{ n }}{% if n %}{{ a(n - 1) }}{% endif %}" + t("endmacro") + "{{ a(" + self.pick("2", "3", "0") + ") }}", lambda: t("for x in l") + t("macro m(q)") + "{{ x }}{{ q }}" + t("endmacro") + "{{ m(1) }}" + t("endfor"),
            lambda: self.pick("{{ 'a' 'b' }}", "{{ 012 }}", "{{ 1if t }}", "{{ messages.0.role }}", "{{ ll.1.0 }}", "{{ ll.0[1] }}", "{{ 1.e3 }}", "{{ 1 2 }}", "{{ a. }}", "{{ (1) }}", "{{ [1,] }}", "{{ {'a':1,} }}", "{{ ,1 }}", "{{ not }}", "{{ x is }}", "{{ s|upper|lower }}", "{{ f.real }}", "{{ s.upper }}",
                              "{{ 'a'.x }}", "{{ l.append(1) }}", "{{ d.update({}) }}", "{{ ''.__class__ }}", "{{ d.__x }}", "{% set d.x = 1 %}", "{% do 1 %}", "{% include 'x' %}", "{{ loop.index }}", "{{ self }}", "{{ l.0 }}", "{{ d['items'] is callable }}", "{{ s['upper']() }}", "{{ d.b.c }}", "{{ -s }}", "{{ +s }}", "{{ +t }}", "{{ -t }}", "{{ -nf }}", "{{ - 2 ** 2 }}",
                              "{{ 2 ** -1 }}", "{{ 0 ** -1 }}", "{{ (-8) ** 0.5 }}", "{{ 2 ** 3 ** 2 }}", "{{ -7 // 2 }}{{ -7 % 3 }}{{ 7 % -3 }}", "{{ 1e400 }}", "{{ s is string is string }}", "{{ 5 is odd and 4 is even }}", "{{ x is defined and x }}", "{{ not x is defined }}", "{{ 'x' is in 'xyz' }}"),
        )()

    def fragment(self):
        self.names = []
        if self.one(.55):
            return "{{ " + self.expression(2) + " }}"
        return "".join(self.statement(2) + self.text() for _ in range(self.pick(1, 1, 2)))


def fragments(seed, n):
    maker, seen = Maker(seed), set()
    while len(seen) < n:
        text = maker.fragment()
        if text not in seen and len(text) < 2000:
            seen.add(text)
            yield text
