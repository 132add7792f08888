// The page with one of the small worlds of tests/scenarios/shown: cuts, volumes, markers and threads, a second picture, marks.
//
//     node tests/browser/shown.mjs ADDRESS FOLDER NAME
//
// Pictures go into FOLDER, figures to stdout; `tests/browser/test_shown_page.py` judges both.

import { join } from "node:path";
import { assert, later, openBrowser, runChecks, until } from "./browser.mjs";

const [address, folder, name] = process.argv.slice(2);
const OUTSIDE = [1120, 620]; // below the panels

const shoot = (page, picture) => page.screenshot({ path: join(folder, `${picture}.png`) });
const seen = (page, ...places) => page.evaluate((all) => all.map((place) => window.viscera.project(...place)), places);

/** The world stands still, and what it was last is drawn. */
async function still(page) {
  await page.locator("#view").focus();
  await page.keyboard.press("p");
  await until(page, () => document.body.dataset.session === "paused", null, "P pauses");
  await later(600);
  const drawn = await page.evaluate(() => window.viscera.stats().framesDrawn);
  await page.mouse.move(OUTSIDE[0], OUTSIDE[1] + 1);
  await later(400);
  return drawn;
}

/** The blade along the line: other triangles, and what the cursor points at is the wound's wall. */
async function cut(page) {
  const [begin, end, middle] = await seen(page, [-0.032, 0, 0.001], [0.025, 0, 0.001], [-0.005, 0, 0]);
  const height = async () => {
    await page.mouse.move(middle.x, middle.y);
    await until(page, (v) => v.tools()[0].active && v.tip() !== null, null, "the blade comes in");
    await later(300);
    return page.evaluate(() => window.viscera.tip()[2]);
  };
  const before = { triangles: await page.evaluate(() => window.viscera.triangles("sheet").length / 3), height: await height() };
  await page.mouse.move(...OUTSIDE);
  await later(700);
  await shoot(page, "cut-before");
  await page.mouse.move(begin.x, begin.y);
  await later(300);
  await page.mouse.down();
  await until(page, (v) => v.tools()[0].grip === 1, null, "the blade cuts");
  for (let i = 1; i <= 40; i++) {
    await page.mouse.move(begin.x + ((end.x - begin.x) * i) / 40, begin.y + ((end.y - begin.y) * i) / 40);
    await later(60);
  }
  await until(page, (v) => v.measures().opened >= 45, null, "the line is open");
  await page.mouse.up();
  await later(2500); // the lips draw apart
  const after = { triangles: await page.evaluate(() => window.viscera.triangles("sheet").length / 3), height: await height() };
  await page.mouse.move(...OUTSIDE);
  await still(page);
  await shoot(page, "cut-after");
  const vertices = await page.evaluate(() => window.viscera.vertices("sheet").length / 3);
  return { before, after, vertices, middle };
}

/** Smoke at a place above the tissue, blood in saline at another, bare tissue at a third. */
async function haze(page) {
  await until(page, (v) => v.frame.time > 2, null, "there is smoke");
  await page.mouse.move(...OUTSIDE);
  await still(page);
  await shoot(page, "haze");
  const [smoke, blood, tissue] = await seen(page, [-0.025, 0, 0.026], [0.027, 0, 0.004], [-0.03, -0.028, 0]);
  const filled = await page.evaluate(() => ["smoke", "saline"].map((one) => Math.max(...window.viscera.texels(one).filter((_, i) => i % 4 === 0))));
  return { smoke, blood, tissue, filled };
}

/** Pins from the start, clips when the handle closes, a suture that grows, a wire. */
async function stitches(page) {
  const pins = await page.evaluate(() => window.viscera.markers());
  const [place] = await seen(page, [0, 0.024, 0.001]);
  await page.mouse.move(place.x, place.y);
  await until(page, (v) => v.tools()[0].active, null, "the applier comes in");
  await page.mouse.down();
  await until(page, (v) => v.markers() === 7, null, "three clips are set");
  await page.mouse.up();
  await until(page, (v) => v.measures().stitches >= 9, null, "the suture grows");
  await page.mouse.move(...OUTSIDE);
  await later(900);
  await still(page);
  await shoot(page, "stitches");
  const places = await seen(page, [-0.038, -0.026, 0.0052], [0.038, -0.026, 0.0052], [-0.0255, 0.0005, 0.0028], [0.0, 0.024, 0.0005]);
  return { pins, points: await page.evaluate(() => window.viscera.threads()), places };
}

/** Where the inset is, and what it must not cover. */
const inset = (page) => page.evaluate(() => {
  const box = (element) => {
    const { left, top, right, bottom } = element.getBoundingClientRect();
    return { left, top, right, bottom };
  };
  const around = [...document.querySelectorAll("#header > *, #guide .card, #side .card, #transport")].filter((element) => element.getClientRects().length > 0);
  return {
    window: [window.innerWidth, window.innerHeight], picture: box(document.querySelector(".picture")),
    canvas: box(document.querySelector(".picture canvas")), around: around.map(box),
  };
});

/** What a hand does in the picture: a pedal is held, by pointer and by key, a drag changes two parameters, a click is marked. */
async function handle(page) {
  const is = (v, [name, wanted]) => Math.abs(v.parameters()[name] - wanted) < 0.5;
  const becomes = (name, wanted) => until(page, is, [name, wanted], `${name} is ${wanted}`);
  const pedal = await page.getByRole("button", { name: "Pedal" }).boundingBox();
  await page.mouse.move(pedal.x + 8, pedal.y + 8);
  await page.mouse.down();
  await becomes("pedal", 1);
  await page.mouse.up();
  await becomes("pedal", 0);
  await page.keyboard.down("b");
  await becomes("pedal", 1);
  await page.keyboard.up("b");
  await becomes("pedal", 0);
  const { x, y, width, height } = await page.locator(".picture canvas").boundingBox();
  await page.mouse.move(x + 0.3 * width, y + 0.5 * height);
  await page.mouse.down();
  await page.mouse.move(x + 0.8 * width, y + 0.75 * height, { steps: 6 });
  await page.mouse.up();
  await becomes("across", 30);
  await becomes("up", -15);
  await page.mouse.click(x + 0.25 * width, y + 0.125 * height);
  await until(page, (v) => v.tables().clicks[0][2] > 0, null, "the click has come");
  const click = await page.evaluate(() => window.viscera.tables().clicks[0]);
  assert(Math.abs(click[0] - 0.25) < 0.02 && Math.abs(click[1] - 0.875) < 0.02, `it is where it was: ${click}`);
}

/** The picture beside the view, then the inset as it is, enlarged and folded, in a small window and on a phone. */
async function xray(page) {
  await handle(page);
  const beside = await inset(page);
  await shoot(page, "xray-beside");
  await page.getByRole("button", { name: "X-ray in the view" }).click();
  await page.mouse.move(600, 420);
  await until(page, (v) => v.tools()[0].active && v.frame.time > 3, null, "the probe is in the picture");
  await later(500);
  await still(page);
  await shoot(page, "xray");
  const own = await inset(page);
  const texels = await page.evaluate(() => [...window.viscera.texels("xray").filter((_, i) => i % 4 === 0)]);
  await page.getByRole("button", { name: "Enlarge X-ray" }).click();
  await later(300);
  const grown = await inset(page);
  await shoot(page, "xray-grown");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "X-ray", exact: true }).click();
  assert(await page.locator(".picture canvas").isHidden(), "folded, only the title is left");
  const folded = await inset(page);
  await page.getByRole("button", { name: "X-ray", exact: true }).click();
  const others = {};
  for (const [what, width, height] of [["small", 1024, 700], ["phone", 390, 844]]) {
    await page.setViewportSize({ width, height });
    await later(600);
    others[what] = await inset(page);
    await shoot(page, `xray-${what}`);
  }
  return { beside, own, grown, folded, texels, ...others };
}

/** The ring is where the world says, over everything and in nobody's way. */
async function gaze(page) {
  await until(page, (v) => v.frame.time > 1.5, null, "somebody looks");
  await page.mouse.move(...OUTSIDE);
  await still(page);
  await shoot(page, "gaze");
  const found = await page.evaluate(() => {
    const style = window.getComputedStyle(document.documentElement);
    const side = (which) => parseFloat(style.getPropertyValue(`--free-${which}`));
    const [ring] = window.viscera.marks().filter((mark) => mark.name === "gaze");
    const label = [...document.querySelectorAll(".mark text")].find((text) => text.textContent === "Gaze").getBoundingClientRect();
    return {
      time: window.viscera.frame.time, ring, dots: window.viscera.marks().filter((mark) => mark.name === "trail").length,
      field: { left: side("left"), top: side("top"), width: window.innerWidth - side("left") - side("right"), height: window.innerHeight - side("top") - side("bottom") },
      below: document.elementFromPoint(ring.x + ring.radius, ring.y).id, label: { left: label.left, right: label.right, top: label.top, bottom: label.bottom },
    };
  });
  return found;
}

const { context, close } = await openBrowser();
await runChecks(context, `${address}?detail=plain`, { [name]: { cut, haze, stitches, xray, gaze }[name] });
await close();
