#!/usr/bin/env python3
"""Checks that other programs take our PDF figures for what our SVG and PNG figures are.

    python scripts/check_figures.py target/tmp/figures

The folder is the one that `cargo test --release -p provenir-plot` leaves behind: of each figure a PDF, the PNG of the same
figure and its SVG. qpdf (pikepdf) checks that each PDF is well-formed; PDFium draws it, which must look like the PNG, and finds
the words in it that the SVG has.
"""

import pathlib
import re
import sys
import unicodedata
import xml.etree.ElementTree as xml

import numpy
import pikepdf
import pypdfium2
import pypdfium2.raw as raw
from PIL import Image

# Resolution of the PNGs, in pixels per inch.
DPI = 200
# Where two pictures are the same, edges still differ by how they are smoothed. So the colours of squares of so many pixels are
# compared, and may differ by so much of 255 on average, and in the most different one.
SQUARE = 8
MEAN = 1.2
MOST = 30.0

IDENTITY = "{https://github.com/provenir/provenir/ns/figure/1.0/}identity"
SVG = "{http://www.w3.org/2000/svg}"
DC = "{http://purl.org/dc/elements/1.1/}"
RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"


def squares(picture):
    """The colours of squares."""
    height, width = (side // SQUARE * SQUARE for side in picture.shape[:2])
    whole = picture[:height, :width].astype(float)
    return whole.reshape(height // SQUARE, SQUARE, width // SQUARE, SQUARE, 3).mean(axis=(1, 3))


def differences(left, right):
    """Of two pictures: on average, and in the square where it is largest."""
    found = numpy.abs(squares(left) - squares(right))
    return found.mean(), found.max()


def drawn(page, shape):
    """The page as PDFium draws it, at our resolution and on as many pixels, not stretched to whole ones."""
    height, width = shape[:2]
    bitmap = pypdfium2.PdfBitmap.new_native(width, height, raw.FPDFBitmap_BGR)
    bitmap.fill_rect((255, 255, 255, 255), 0, 0, width, height)
    matrix = raw.FS_MATRIX(DPI / 72, 0, 0, DPI / 72, 0, 0)
    raw.FPDF_RenderPageBitmapWithMatrix(bitmap, page, matrix, raw.FS_RECTF(0, 0, width, height), raw.FPDF_ANNOT)
    return bitmap.to_numpy()[:, :, ::-1]


def check_picture(page, png):
    """The page drawn by PDFium against our pixels. Returns what they differ by."""
    ours = numpy.asarray(Image.open(png).convert("RGB"))
    theirs = drawn(page, ours.shape)
    mean, most = differences(theirs, ours)
    if mean > MEAN or most > MOST:
        sys.exit(f"{png}: PDFium draws something else: {mean:.2f} of 255 on average, {most:.1f} at most")
    # What the bounds are worth: the same picture two pixels aside is another.
    aside = differences(numpy.roll(theirs, 2, axis=1), ours)
    if aside[1] < MOST:
        sys.exit(f"{png}: a picture that is shifted passes for the same: {aside}")
    return mean, most


def letters(text):
    """A text without spaces; what looks the same is the same."""
    return "".join(unicodedata.normalize("NFKC", text).split())


def check_words(page, svg):
    """Whether the texts of the SVG are in the page, each in one piece. Returns how many."""
    found = letters(page.get_textpage().get_text_bounded())
    # What is too long is cut, and has its whole wording as a title.
    texts = [element for element in xml.parse(svg).iter() if element.get("aria-label") and element[0].tag != f"{SVG}title"]
    for label in (element.get("aria-label") for element in texts):
        # Marks of direction are not drawn.
        drawn = re.sub("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]", "", label)
        if letters(drawn) not in found:
            sys.exit(f"{svg}: PDFium does not find `{label}` in the PDF, but {found!r}")
    return len(texts)


def one(element, path):
    found = element.findall(path)
    if len(found) != 1:
        sys.exit(f"the XMP packet has {len(found)} of {path}")
    return "".join(found[0].itertext())


def check_file(path):
    """What a strict reader and a journal's checks look for."""
    with pikepdf.open(path, suppress_warnings=False) as pdf:
        problems = pdf.check_pdf_syntax() + [str(warning) for warning in pdf.get_warnings()]
        if problems:
            sys.exit(f"{path}: qpdf finds {problems}")
        packet = xml.fromstring(pdf.Root.Metadata.read_bytes())
        for key, name in [("/Title", "title"), ("/Subject", "description")]:
            if key in pdf.docinfo and str(pdf.docinfo[key]) != one(packet, f".//{DC}{name}/{RDF}Alt/{RDF}li"):
                sys.exit(f"{path}: {key} differs between information and packet")
        one(packet, f".//{IDENTITY}")
        times = [key for key in pdf.docinfo if "Date" in key]
        if times or "/Title" not in pdf.docinfo:
            sys.exit(f"{path}: the document information has {list(pdf.docinfo)}")
        if str(pdf.Root.Lang) != "en" or not pdf.Root.MarkInfo.Marked:
            sys.exit(f"{path} is not tagged")
        figure = pdf.Root.StructTreeRoot.K.K
        marked = [token for token in pikepdf.parse_content_stream(pdf.pages[0]) if str(token.operator) == "BDC"]
        if figure.S != "/Figure" or not str(figure.Alt) or figure.K not in (0, [0]) or len(marked) != 1:
            sys.exit(f"{path}: the structure does not lead to the page: {figure}, {marked}")
        for font in pdf.pages[0].Resources.Font.values():
            inner = font.DescendantFonts[0]
            if font.Subtype != "/Type0" or inner.Subtype != "/CIDFontType2":
                sys.exit(f"{path}: a font is {font.Subtype}, {inner.Subtype}")
            if len(inner.FontDescriptor.FontFile2.read_bytes()) != inner.FontDescriptor.FontFile2.Length1:
                sys.exit(f"{path}: a font is not of its length")
        return [float(side) for side in pdf.pages[0].MediaBox][2:]


def main(folder):
    files = sorted(pathlib.Path(folder).glob("*.pdf"))
    if not files:
        sys.exit(f"{folder} holds no PDF")
    worst = (0.0, 0.0)
    words = 0
    for path in files:
        size = check_file(path)
        svg = xml.parse(path.with_suffix(".svg")).getroot()
        if size != [float(side) for side in svg.get("viewBox").split()[2:]]:
            sys.exit(f"{path}: the page is {size} points, not {svg.get('viewBox')}")
        page = pypdfium2.PdfDocument(path)[0]
        worst = max(worst, check_picture(page, path.with_suffix(".png")), key=lambda found: found[1])
        words += check_words(page, path.with_suffix(".svg"))
    print(f"{len(files)} figures: PDF as PNG, to {worst[0]:.2f} of 255 ({worst[1]:.1f} in the worst square), and {words} texts as in SVG")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
