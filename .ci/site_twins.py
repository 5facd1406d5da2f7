"""A small sound site and broken twins of it, which check_site.py has to tell apart."""

PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,"><title>twin</title></head>
<body>
<div id="what">what</div><div id="whom">whom</div><div id="python"><pre style="overflow-x: auto">a = 1</pre></div>
<div id="command">command</div><div id="picture"><img src="picture.svg" alt="a picture"></div><div id="why"><a href="part/other.html#there">why</a></div>
</body></html>
"""
OTHER = '<!DOCTYPE html><html lang="en"><head><meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,"><title>other</title></head><body><p id="there">there <a href="../index.html">back</a></p></body></html>'
PICTURE = '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40"><rect width="40" height="40"/></svg>'
LONG = '<div style="height: 800px"></div>'

#: A name, what is replaced in the first page, by what, and what the check has to say of it: of its files,
READ = [
    ("a link to no page", "part/other.html", "part/another.html", "leads nowhere"),
    ("a link to a folder", "part/other.html#there", "part/", "leads nowhere"),
    ("a link to no anchor", "#there", "#nowhere", "has no such anchor"),
    ("a picture that is missing", "picture.svg", "missing.svg", "leads nowhere"),
    ("a link from the root", "part/other.html#there", "/part/other.html", "leads out of the folder"),
    ("a link out of the site", "part/other.html#there", "../outside.html", "leads out of the folder"),
    ("the folder where it was made", "a = 1", "HERE", "names the folder"),
    ("a script from elsewhere", "</body>", '<script src="https://example.org/x.js"></script></body>', "loads https://example.org/x.js"),
]
#: and in a browser.
OPENED = [
    ("a picture that does not come", "</body>", "<script>new Image().src = 'missing.svg'</script></body>", "did not come"),
    ("a request to elsewhere", "</body>", "<script>fetch('http://127.0.0.1:9/').catch(() => 0)</script></body>", "asks for http://127.0.0.1:9/"),
    ("words on the console", "</body>", "<script>console.error('oh')</script></body>", "console: "),
    ("an exception", "</body>", "<script>undefined.x</script></body>", "exception: "),
    ("a table that is too wide", "</body>", '<div style="width: 500px">wide</div></body>', "(phone): the page is"),
    ("a line that is too wide", 'style="overflow-x: auto">a = 1', ">" + "a = 1 + " * 300, "(desk): the page is"),
    ("a part that is missing", 'id="command"', 'id="commands"', "there is no #command"),
    ("a part below the first screen of a desk", '<div id="why">', LONG + '<div id="why">', "#why ends at"),
    ("a command below the first screen of a phone", '<div id="command">', LONG + '<div id="command">', "(phone): #command ends at"),
]


def made(folder, page):
    (folder / "part").mkdir(parents=True)
    (folder / "index.html").write_text(page, encoding="utf-8")
    (folder / "part" / "other.html").write_text(OTHER, encoding="utf-8")
    (folder / "picture.svg").write_text(PICTURE, encoding="utf-8")
    # there is something outside of the site
    (folder.parent / "outside.html").write_text(OTHER, encoding="utf-8")
    return folder


def twins(folder, here, has_browser):
    """Name, folder, and what has to be said of it: nothing of the first."""
    folder = folder.resolve()
    yield "sound", made(folder / "sound", PAGE), None
    for number, (name, old, new, phrase) in enumerate(READ + (OPENED if has_browser else [])):
        assert old in PAGE, name
        yield name, made(folder / f"broken-{number}", PAGE.replace(old, new.replace("HERE", here), 1)), phrase
