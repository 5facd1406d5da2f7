"""LaTeX formulas as MathML, which browsers draw themselves: `mathml(formula, display)`. Knows what the book uses; anything else is an error.

The text of elements has its punctuation as character references, so that Markdown leaves it alone.
"""

import re

TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|\S", re.DOTALL)
#: Symbols that are letters: upright ones are marked.
LETTERS = dict(
    alpha="α", beta="β", gamma="γ", delta="δ", varepsilon="ε", eta="η", theta="θ", vartheta="ϑ", kappa="κ", lambda_="λ", mu="μ", nu="ν", xi="ξ",
    pi="π", rho="ρ", sigma="σ", tau="τ", varphi="φ", psi="ψ", omega="ω", ell="ℓ", partial="∂",
)
UPRIGHT = dict(
    Delta="Δ", Theta="Θ", Lambda="Λ", Xi="Ξ", Sigma="Σ", Phi="Φ", Psi="Ψ", Omega="Ω", nabla="∇", top="⊤", ast="∗", infty="∞", dots="…", circ="∘",
)
RELATIONS = dict(
    sim="∼", propto="∝", leftarrow="←", to="→", mapsto="↦", approx="≈", le="≤", ge="≥", geq="≥", ne="≠", neq="≠", ll="≪", gg="≫", mid="∣",
    Vert="‖", **{"in": "∈"},
)
BINARY = dict(times="×", cdot="⋅", pm="±", otimes="⊗")
OPENING = {"(": "(", "[": "[", "\\{": "{", "\\langle": "⟨", "\\lVert": "‖", "\\lvert": "|", "\\lfloor": "⌊", "\\lceil": "⌈"}
CLOSING = {")": ")", "]": "]", "\\}": "}", "\\rangle": "⟩", "\\rVert": "‖", "\\rvert": "|", "\\rfloor": "⌋", "\\rceil": "⌉"}
FUNCTIONS = {"log", "exp", "det", "sin", "cos", "sinh", "cosh", "tanh", "cot"}
#: What goes below and above in a formula of its own.
LIMITS = dict(sum="∑", prod="∏", min="min", max="max")
ACCENTS = dict(hat="^", bar="¯", tilde="~", dot="˙", overline="¯")
SPACES = {",": 3, ":": 4, ";": 5, "!": -3, " ": 4.5, "quad": 18, "qquad": 36}
SIZES = dict(big="1.2em", Big="1.8em")
CALLIGRAPHIC = {"B": "ℬ", "E": "ℰ", "F": "ℱ", "H": "ℋ", "I": "ℐ", "L": "ℒ", "M": "ℳ", "R": "ℛ"}
DOUBLE = {"C": "ℂ", "H": "ℍ", "N": "ℕ", "P": "ℙ", "Q": "ℚ", "R": "ℝ", "Z": "ℤ"}


def text(characters):
    return re.sub(r"[!-/:-@\[-`{-~]", lambda one: f"&#{ord(one[0])};", characters)


def element(tag, inside, **attributes):
    said = "".join(f' {name}="{value}"' for name, value in attributes.items())
    return f"<{tag}{said}>{inside}</{tag}>"


def operator(characters, **attributes):
    return element("mo", text(characters), **attributes)


def space(eighteenths):
    return f'<mspace width="{eighteenths / 18:.4g}em"></mspace>'


def letter(character):
    return element("mi", text(character))


def upright(characters):
    """Names of several letters are upright of themselves."""
    return element("mi", text(characters), **({"mathvariant": "normal"} if len(characters) == 1 else {}))


def row(parts):
    return parts[0] if len(parts) == 1 else element("mrow", "".join(parts))


class Formula:
    """A formula that is read once, from left to right."""

    def __init__(self, source):
        self.tokens, self.at, self.source = [], 0, source
        for found in TOKEN.finditer(source):
            self.tokens.append((found[0], found.start()))

    def error(self, what):
        return ValueError(f"{what} in the formula {self.source}")

    def peek(self):
        return self.tokens[self.at][0] if self.at < len(self.tokens) else None

    def take(self, wanted=None):
        token = self.peek()
        if token is None or wanted not in (None, token):
            raise self.error(f"{wanted or 'something'} is missing")
        self.at += 1
        return token

    def raw(self):
        """The text of a group, with its spaces."""
        self.take("{")
        start = self.tokens[self.at][1]
        while self.take() != "}":
            pass
        inside = self.source[start : self.tokens[self.at - 1][1]]
        if re.search(r"[\\{}^_]", inside):
            raise self.error(f"{inside!r} where plain text was expected")
        return inside

    def row(self, *ends):
        """Atoms up to one of `ends`, which is left. Kinds are TeX's: they say where space goes and which minus is a sign."""
        parts, before = [], "begin"
        while self.peek() not in ends:
            kind, atom, movable = self.atom(before)
            atom = self.scripts(atom, movable)
            if kind == "function":
                if before in ("letter", "close", "function"):
                    parts.append(space(3))
                # the next function has a space of its own before it
                follows = self.peek()
                if follows not in (*ends, *OPENING, "\\big", "\\Big", "\\,", ",", "/") and follows[1:] not in FUNCTIONS:
                    atom += space(3)
            parts.append(atom)
            before = kind if kind != "space" else before
        return parts

    def scripts(self, base, movable):
        below, above = [], []
        while self.peek() in ("_", "^", "'"):
            mark = self.take()
            if mark == "'":
                above.append(operator("′", lspace="0", rspace="0"))
            else:
                (below if mark == "_" else above).append(self.argument())
        if not (below or above):
            return base
        name = {(True, True): ("msubsup", "munderover"), (True, False): ("msub", "munder"), (False, True): ("msup", "mover")}[bool(below), bool(above)]
        return element(name[movable], base + (row(below) if below else "") + (row(above) if above else ""))

    def argument(self):
        if self.peek() == "{":
            self.take()
            inside = self.row("}", None)
            self.take("}")
            return row(inside) if inside else "<mrow></mrow>"
        token = self.peek()
        if token is not None and token.isdigit():
            return element("mn", self.take())
        return self.atom("begin")[1]

    def atom(self, before):
        """Kind, MathML, and whether scripts go below and above."""
        token = self.take()
        name = token[1:]
        if token == "{":
            self.at -= 1
            return "letter", self.argument(), False
        if token.isdigit():
            while (self.peek() or "").isdigit() or (self.peek() == "." and self.at + 1 < len(self.tokens) and self.tokens[self.at + 1][0].isdigit()):
                token += self.take()
            return "letter", element("mn", text(token)), False
        if token in OPENING:
            return "open", operator(OPENING[token], form="prefix", stretchy="false"), False
        if token in CLOSING:
            return "close", operator(CLOSING[token], form="postfix", stretchy="false"), False
        if token.isalpha():
            return "letter", letter(token), False
        if token in "+-":
            sign = {"form": "prefix"} if before in ("begin", "open", "relation", "binary", "punctuation", "function") else {}
            return "binary", operator(token.replace("-", "−"), **sign), False
        if token in "=<>":
            return "relation", operator(token), False
        if token in ",;":
            return "punctuation", operator(token), False
        if token == ":":
            return "relation", operator(token), False
        if token in "/|":
            return "letter", operator(token, lspace="0", rspace="0", stretchy="false"), False
        if token == ".":
            return "punctuation", operator(token, lspace="0", rspace="0"), False
        if token == "*":
            return "letter", upright("∗"), False
        if not token.startswith("\\"):
            raise self.error(f"{token} is not known")
        return self.command(name)

    def command(self, name):
        known = lambda table: table.get(name, table.get(f"{name}_"))  # noqa: E731
        if known(LETTERS):
            return "letter", letter(known(LETTERS)), False
        if name in UPRIGHT:
            return "letter", upright(UPRIGHT[name]), False
        if name in RELATIONS:
            return "relation", operator(RELATIONS[name], lspace="0.2778em", rspace="0.2778em", stretchy="false"), False
        if name in BINARY:
            return "binary", operator(BINARY[name]), False
        if name in SPACES:
            return "space", space(SPACES[name]), False
        if name in FUNCTIONS:
            return "function", upright(name), False
        if name in LIMITS:
            return "function", operator(LIMITS[name], movablelimits="true", lspace="0", rspace="0"), True
        if name == "int":
            return "function", operator("∫"), False
        if name == "operatorname":
            return "function", upright(self.raw()), False
        if name in SIZES:
            token = self.take()
            form = {"form": "prefix"} if token in OPENING else {"form": "postfix"} if token in CLOSING else {"lspace": "0", "rspace": "0"}
            kind = "open" if token in OPENING else "close" if token in CLOSING else "letter"
            mark = OPENING.get(token) or CLOSING.get(token) or token
            if mark.startswith("\\"):
                raise self.error(f"\\{name}{mark} is not known")
            return kind, operator(mark, **form, stretchy="true", symmetric="true", minsize=SIZES[name], maxsize=SIZES[name]), False
        if name in ("frac", "tfrac"):
            small = {"displaystyle": "false"} if name == "tfrac" else {}
            return "letter", element("mfrac", self.argument() + self.argument(), **small), False
        if name == "sqrt":
            return "letter", element("msqrt", self.argument()), False
        if name in ACCENTS:
            return "letter", element("mover", self.argument() + operator(ACCENTS[name], stretchy=str(name == "overline").lower()), accent="true"), False
        if name == "mathrm":
            return "letter", upright(self.raw()), False
        if name == "text":
            return "letter", element("mtext", text(self.raw().replace(" ", "\u00a0"))) if self.peek() == "{" else self.argument(), False
        if name == "texttt":
            return "letter", element("mtext", text(self.raw()), style="font-family:monospace"), False
        if name in ("mathbb", "mathcal"):
            return "letter", self.script_letter(name), False
        if name == "begin":
            return "letter", self.matrix(), False
        raise self.error(f"\\{name} is not known")

    def script_letter(self, name):
        which = self.raw() if self.peek() == "{" else self.take()
        special, first = (DOUBLE, 0x1D538) if name == "mathbb" else (CALLIGRAPHIC, 0x1D49C)
        if not re.fullmatch("[A-Z]", which):
            raise self.error(f"\\{name} of {which} is not known")
        return upright(special.get(which) or chr(first + ord(which) - ord("A")))

    def matrix(self):
        if self.raw() != "pmatrix":
            raise self.error("an environment other than pmatrix")
        rows, cells = [], []
        while True:
            cells.append(element("mtd", "".join(self.row("&", "\\\\", "\\end", None))))
            end = self.take()
            if end != "&":
                rows.append(element("mtr", "".join(cells)))
                cells = []
            if end == "\\end":
                self.raw()
                return element("mrow", operator("(", form="prefix") + element("mtable", "".join(rows)) + operator(")", form="postfix"))


def mathml(formula, display=False):
    source = " ".join(formula.split())
    parts = Formula(source).row(None)
    return element("math", "".join(parts), **({"display": "block"} if display else {}))
