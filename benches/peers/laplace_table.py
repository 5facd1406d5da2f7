"""Markdown of the results of `laplace.py`: medians over rounds, in brackets least and most."""

import table

HEADINGS = [
    "work", "peer", "peer, ms", "reprior, ms", "peer / reprior", "peer, MB", "reprior, MB",
    "MB, peer / reprior",
]  # fmt: skip


def both(rounds, peer, field, scale=1.0):
    """Values of the peer, of reprior, and ratios of the same round where both worked."""
    pairs = [(one["peers"].get(peer), one["ours"]) for one in rounds]
    theirs = [scale * a[field] for a, _ in pairs if a]
    mine = [scale * b[field] for _, b in pairs if b]
    return theirs, mine, [a[field] / b[field] for a, b in pairs if a and b]


def cells(rounds, peer):
    """The row of a peer: times and memory of both with their ratios."""
    out = [rounds[0]["title"], peer]
    for field, scale in (("seconds", 1e3), ("megabytes", 1.0)):
        theirs, mine, ratios = both(rounds, peer, field, scale)
        ratio = f"**{table.spread(ratios)}**" if ratios else "–"
        out += [table.spread(theirs), table.spread(mine), ratio]
    return out


def facts(rounds):
    """When, where and what."""
    first = rounds[0]
    versions = {}
    for one in rounds:
        for peer in one["peers"].values():
            versions |= peer["versions"] if peer else {}
    ours = [f"reprior {first['version']}"] if any(one["ours"] for one in rounds) else []
    names = ", ".join([*ours, *(f"{name} {v}" for name, v in versions.items())])
    machine = first["machine"]
    return (
        f"{first['date']}; {machine['processor']}, {machine['cores']} cores; {first['rows']:,} "
        f"pictures; {names}; rounds: {len(rounds)} (medians, in brackets the least and the most)."
    )


def markdown(records):
    lines = ["| " + " | ".join(HEADINGS) + " |", "|---" * len(HEADINGS) + "|"]
    notes = []
    for rounds in table.latest(records):
        lines += ["| " + " | ".join(cells(rounds, peer)) + " |" for peer in rounds[0]["peers"]]
        notes += [facts(rounds)]
    return "\n".join([*lines, "", *(line + "\n" for line in dict.fromkeys(notes))])
