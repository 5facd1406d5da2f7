"""Markdown of the results of `networks.py`: medians over rounds, in brackets least and most."""

import statistics

import table

HEADINGS = [
    "case", "rows", "peer", "peer, ms", "reprior, ms", "peer / reprior",
    "peak MB, peer / reprior",
]  # fmt: skip


def cells(rounds, peer):
    """The row of a peer: both times, the ratio of times of the same round, memory."""
    first = rounds[0]
    both = [(one["peers"][peer], one["ours"]) for one in rounds]
    theirs, mine = ([side["ms"] for side in sides] for sides in zip(*both))
    ratios = [a / b for a, b in zip(theirs, mine)]
    out = [first["title"], f"{first['rows']:,}", peer]
    out += [table.spread(theirs), table.spread(mine), f"**{table.spread(ratios)}**"]
    memory = ([side["peak_mb"] for side in sides] for sides in zip(*both))
    return [*out, " / ".join(table.number(statistics.median(values)) for values in memory)]


def epochs(rounds):
    """What an epoch takes at these milliseconds a batch."""
    first = rounds[0]
    steps = first["epoch"] / first["rows"] / 1e3
    sides = {peer: [one["peers"][peer]["ms"] for one in rounds] for peer in first["peers"]}
    sides["reprior"] = [one["ours"]["ms"] for one in rounds]
    each = (f"{name} {table.number(steps * statistics.median(ms))} s" for name, ms in sides.items())
    return (
        f"An epoch of {first['epoch']:,} rows in batches of {first['rows']}: {', '.join(each)}."
    )


def facts(rounds):
    """When, where and what."""
    first = rounds[0]
    versions = {}
    for one in first["peers"].values():
        versions |= one["versions"]
    names = [f"reprior {first['version']}", *(f"{name} {v}" for name, v in versions.items())]
    machine = first["machine"]
    return (
        f"{first['date']}; {machine['processor']}, {machine['cores']} cores; {', '.join(names)}; "
        f"rounds: {len(rounds)} (medians, in brackets the least and the most)."
    )


def markdown(records):
    lines = ["| " + " | ".join(HEADINGS) + " |", "|---" * len(HEADINGS) + "|"]
    notes = []
    for rounds in table.latest(records):
        lines += ["| " + " | ".join(cells(rounds, peer)) + " |" for peer in rounds[0]["peers"]]
        notes += [epochs(rounds)] if rounds[0]["epoch"] else []
        notes += [facts(rounds)]
    return "\n".join([*lines, "", *(line + "\n" for line in dict.fromkeys(notes))])
