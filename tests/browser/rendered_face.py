"""A face that looks about, drawn by rule, as a video for Chromium's fake camera.

It stands still and looks at each of some places in turn: the irises move, as those of eyes 60 cm before a screen do.
Four squares in the corner of the picture, black or white, are the number of the place: a test knows when to act.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

WIDTH, HEIGHT = 640, 480
EYES = ((255.0, 205.0), (385.0, 205.0))
"""Middles of the eyes, as they are seen [px]."""
TRAVEL = (17.0, 9.0)
"""How far the irises go from one side of the screen to the other [px]."""
MARK, BITS = 32, 4
"""Side of a square of those that number the place [px], and how many they are, the lowest first."""
FRAMES_PER_SECOND = 2

Place = tuple[float, float]


def draw_face(place: Place) -> Image.Image:
    """Somebody who looks at a place on the screen, 0 to 1 from the top left; the camera sees it mirrored."""
    picture = Image.new("RGB", (WIDTH, HEIGHT), (96, 104, 112))
    draw = ImageDraw.Draw(picture)
    draw.rectangle((0, 430, WIDTH, HEIGHT), fill=(40, 52, 84))
    draw.rounded_rectangle((270, 340, 370, 470), 30, fill=(186, 140, 116))  # neck
    draw.ellipse((188, 30, 452, 330), fill=(52, 36, 28))  # hair
    draw.ellipse((202, 62, 438, 392), fill=(222, 178, 152))  # head
    draw.ellipse((186, 190, 214, 262), fill=(206, 158, 132))
    draw.ellipse((426, 190, 454, 262), fill=(206, 158, 132))
    draw.pieslice((198, 34, 442, 250), 192, 348, fill=(52, 36, 28))
    draw.ellipse((226, 110, 414, 380), fill=(222, 178, 152))
    picture = picture.filter(ImageFilter.GaussianBlur(3))
    picture = _shaded(picture)
    draw = ImageDraw.Draw(picture)
    for x, y in EYES:
        _draw_eye(draw, x, y, place)
    _draw_nose_and_mouth(draw)
    return picture.filter(ImageFilter.GaussianBlur(1))


def _shaded(picture: Image.Image) -> Image.Image:
    """Light from the front: cheeks and forehead bright, rims and sockets dark."""
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH].astype(float)
    round_face = 1.08 - 0.30 * (((x - 320) / 118) ** 2 + ((y - 228) / 168) ** 2).clip(0, 1.4)
    sockets = sum(np.exp(-(((x - ex) / 38) ** 2) - ((y - ey + 4) / 24) ** 2) for ex, ey in EYES)
    nose = np.exp(-(((x - 320) / 13) ** 2) - ((y - 235) / 55) ** 2)
    chin = np.exp(-(((x - 320) / 45) ** 2) - ((y - 345) / 14) ** 2)
    light = round_face - 0.16 * sockets + 0.10 * nose - 0.10 * chin
    face = (((x - 320) / 122) ** 2 + ((y - 228) / 168) ** 2) < 1.0
    values = np.asarray(picture, dtype=float)
    values[face] *= light[face][:, None]
    return Image.fromarray(values.clip(0, 255).astype(np.uint8))


def _draw_eye(draw: ImageDraw.ImageDraw, x: float, y: float, place: Place) -> None:
    wide, high = 27.0, 11.0
    angles = np.linspace(0, 2 * np.pi, 60)
    lids = [(x + wide * np.cos(a), y + high * np.sin(a) * (0.75 + 0.25 * np.sin(a) ** 2)) for a in angles]
    draw.polygon(lids, fill=(238, 234, 230))
    # A camera on the screen sees who looks to the right of it look to the left.
    ix, iy = x - TRAVEL[0] * (place[0] - 0.5), y + TRAVEL[1] * (place[1] - 0.5)
    for radius, colour in ((9.5, (70, 48, 34)), (8.5, (96, 66, 44)), (4.2, (12, 10, 10))):
        draw.ellipse((ix - radius, iy - radius, ix + radius, iy + radius), fill=colour)
    draw.ellipse((ix - 4, iy - 5, ix - 1, iy - 2), fill=(250, 250, 250))
    # Skin over what of the iris the lids cover.
    top = [(x + wide * np.cos(a), y - high * abs(np.sin(a))) for a in np.linspace(np.pi, 0, 30)]
    draw.polygon([*top, (x + wide, y - 24), (x - wide, y - 24)], fill=(196, 150, 126))
    low = [(x + wide * np.cos(a), y + high * abs(np.sin(a))) for a in np.linspace(np.pi, 0, 30)]
    draw.polygon([*low, (x + wide, y + 20), (x - wide, y + 20)], fill=(208, 164, 138))
    draw.line(top, fill=(44, 28, 22), width=4)
    draw.line(low, fill=(128, 88, 72), width=2)
    draw.arc((x - 36, y - 44, x + 36, y + 10), 205, 335, fill=(58, 40, 30), width=8)


def _draw_nose_and_mouth(draw: ImageDraw.ImageDraw) -> None:
    draw.line([(308, 210), (302, 262), (296, 276)], fill=(190, 144, 120), width=3)
    draw.ellipse((296, 268, 344, 292), fill=(216, 168, 142))
    draw.ellipse((302, 280, 315, 289), fill=(120, 76, 62))
    draw.ellipse((325, 280, 338, 289), fill=(120, 76, 62))
    draw.polygon([(282, 328), (308, 318), (320, 322), (332, 318), (358, 328), (320, 333)], fill=(168, 84, 80))
    draw.polygon([(282, 328), (320, 333), (358, 328), (338, 346), (302, 346)], fill=(186, 100, 94))
    draw.line([(282, 328), (320, 332), (358, 328)], fill=(96, 44, 44), width=3)


def write_video(path: Path, places: Sequence[Place], seconds: float) -> None:
    """A raw video (Y4M) in which the face looks at each place for so long; Chromium repeats it."""
    with path.open("wb") as file:
        file.write(f"YUV4MPEG2 W{WIDTH} H{HEIGHT} F{FRAMES_PER_SECOND}:1 Ip A1:1 C420jpeg\n".encode())
        for number, place in enumerate(places):
            picture = draw_face(place)
            for bit in range(BITS):
                white = (number >> bit) & 1
                ImageDraw.Draw(picture).rectangle(
                    (bit * MARK, 0, (bit + 1) * MARK - 1, MARK - 1), fill=(255 * white,) * 3
                )
            frame = _planes(np.asarray(picture, dtype=np.float64))
            for _ in range(round(seconds * FRAMES_PER_SECOND)):
                file.write(b"FRAME\n" + frame)


def _planes(rgb: NDArray[np.float64]) -> bytes:
    """Y, Cb and Cr of BT.601, full range, colours at half the resolution."""
    r, g, b = np.moveaxis(rgb, 2, 0)
    y = 0.299 * r + 0.587 * g + 0.114 * b
    halves = [
        (128.0 + one).reshape(HEIGHT // 2, 2, WIDTH // 2, 2).mean(axis=(1, 3))
        for one in (0.564 * (b - y), 0.713 * (r - y))
    ]
    return b"".join(plane.round().clip(0, 255).astype(np.uint8).tobytes() for plane in (y, *halves))
