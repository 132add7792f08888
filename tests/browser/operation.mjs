// The operation through the page of a real server, by mouse and keys alone: hold, free, clip, cut, part the bed, take out.
//
//     node tests/browser/operation.mjs ADDRESS FOLDER PLACES [LAST]
//
// PLACES is JSON of places in the tissue at rest [m], by the phase that goes there, and of where the trocars are. The hand
// sees where they are now by the surface that the page draws, and how far it is by the measures in the page. Pictures of
// each phase go into FOLDER, measures to stdout; `tests/browser/test_operation.py` judges both. LAST is the last phase.

import { join } from "node:path";
import { later, openBrowser, openPage, started } from "./browser.mjs";

const [address, folder, given, last = "out"] = process.argv.slice(2);
const places = JSON.parse(given);
await started(address);
const { context, close } = await openBrowser({ width: 960, height: 600, scale: 0.5 });
const { page, errors } = await openPage(context, `${address}?detail=plain`);
const found = {};

const SKIN = places.skin; // name of the surface's vertices
const NEAR = 0.0006; // [m] from where the hand is wanted
const NOTCH = 0.001; // [m] that a notch of the wheel goes along the shaft
const DOWN = [0, 0, -1], ACROSS = [0, 1, 0];

const sub = (a, b) => a.map((x, k) => x - b[k]);
const add = (a, b) => a.map((x, k) => x + b[k]);
const scaled = (a, s) => a.map((x) => x * s);
const dot = (a, b) => a.reduce((sum, x, k) => sum + x * b[k], 0);
const length = (a) => Math.sqrt(dot(a, a));
const cross = ([a, b, c], [d, e, f]) => [b * f - c * e, c * d - a * f, a * e - b * d];

/** Simulated seconds, however slow the machine is. */
async function simulated(seconds) {
  const time = () => page.evaluate(() => window.viscera.frame.time);
  for (const end = (await time()) + seconds; (await time()) < end; ) await later(20);
}

await page.evaluate((name) => (window.atRest = window.viscera.vertices(name)), SKIN);

/** Where a place of the tissue at rest is now, by the eight nearest points of its drawn surface [m]. */
async function seen(place) {
  return page.evaluate(([name, [x, y, z]]) => {
    const rest = window.atRest, now = window.viscera.vertices(name);
    const near = [];
    for (let k = 0; k + 2 < rest.length; k += 3) {
      const far = Math.hypot(rest[k] - x, rest[k + 1] - y, rest[k + 2] - z);
      if (near.length < 8 || far < near[7][0]) {
        near.push([far, k]);
        near.sort((a, b) => a[0] - b[0]);
        near.length = Math.min(near.length, 8);
      }
    }
    const middle = (a) => near.map(([, k]) => now[k + a] - rest[k + a]).sort((p, q) => p - q)[4];
    return [x + middle(0), y + middle(1), z + middle(2)];
  }, [SKIN, place]);
}

/** The hand as it is: its instrument's number, the tip that it asks for, where what acts would be then, and the turn. */
async function hand() {
  return page.evaluate(() => {
    const tool = window.viscera.tool(), tip = window.viscera.tip(), state = window.viscera.tools()[tool];
    const acts = window.viscera.actingPoints()[tool];
    return { tool, tip, acts: tip?.map((x, k) => x + acts[k] - state.position[k]), turn: state.orientation };
  });
}

let mouse = [480, 300];
async function moveMouse(x, y) {
  mouse = [Math.min(Math.max(x, 5), 955), Math.min(Math.max(y, 5), 595)];
  await page.mouse.move(...mouse);
}
const onScreen = (place) => page.evaluate(([x, y, z]) => window.viscera.project(x, y, z), place);

/** Brings what acts to a place [m], as an eye that sees both does: the pointer sideways, the wheel along the shaft. */
async function reach(place, looks = 8) {
  for (let k = 0; k < looks; k++) {
    const { tool, acts } = await hand();
    if (!acts) {
      const at = await onScreen(place);
      await moveMouse(at.x, at.y);
      await simulated(0.05);
      continue;
    }
    const error = sub(place, acts);
    if (length(error) < NEAR) return;
    const shaft = sub(place, places.trocars[tool]);
    const notches = Math.max(-8, Math.min(8, Math.round((0.8 * dot(error, scaled(shaft, 1 / length(shaft)))) / NOTCH)));
    if (notches !== 0) await page.mouse.wheel(0, -100 * notches);
    const [to, from] = [await onScreen(place), await onScreen(acts)];
    await moveMouse(mouse[0] + 0.8 * (to.x - from.x), mouse[1] + 0.8 * (to.y - from.y));
    await simulated(0.03);
  }
}

const turned = ([x, y, z, w], v) => {
  const t = scaled(cross([x, y, z], v), 2);
  return add(add(v, scaled(t, w)), cross([x, y, z], t));
};

/** Turns the instrument about its shaft with Q and E until its x axis looks to this side as far as it can. */
async function turnTo(side) {
  for (let k = 0; k < 12; k++) {
    const { turn } = await hand();
    const [x, z] = [turned(turn, [1, 0, 0]), turned(turn, [0, 0, 1])];
    const wanted = sub(side, scaled(z, dot(side, z)));
    let angle = Math.atan2(dot(cross(x, wanted), z), dot(x, wanted));
    if (side === ACROSS) angle = Math.atan(Math.tan(angle)); // jaws are the same either way
    if (Math.abs(angle) < 0.12) return;
    const key = angle > 0 ? "q" : "e";
    await page.keyboard.down(key);
    await later(Math.min(400, (Math.abs(angle) / 1.8) * 700));
    await page.keyboard.up(key);
    await simulated(0.06);
  }
}

const measures = () => page.evaluate(() => window.viscera.measures());

async function shoot(name) {
  await page.screenshot({ path: join(folder, `operation-${name}.png`), timeout: 90_000 });
  found[`operation-${name}`] = { ...(await measures()), at: await page.evaluate(() => window.viscera.frame.time) };
  console.error(name, JSON.stringify(found[`operation-${name}`]));
}

async function choose(tool, side) {
  await page.keyboard.press(String(tool + 1));
  await moveMouse(...mouse);
  await simulated(0.2);
  if (side) await turnTo(side);
}

/** Comes from `away`, presses, draws through places of the tissue at rest, lets go and leaves. */
async function draw(path, away) {
  await reach(add(await seen(path[0]), away), 4);
  await reach(await seen(path[0]));
  await page.mouse.down();
  for (const place of path) await reach(await seen(place), 3);
  await page.mouse.up();
  await reach(add(await seen(path.at(-1)), away), 3);
}

async function press(place, away, seconds) {
  await reach(add(place, away), 4);
  await reach(place);
  await simulated(0.2);
  await page.mouse.down();
  await simulated(seconds);
  await page.mouse.up();
  await reach(add(place, away), 3);
}

/** The grasper, clamped, is taken up again, drawn up by so much and left clamped [m]. */
async function lift(by) {
  await page.keyboard.press("1");
  await page.mouse.down();
  await simulated(0.1);
  const { tip } = await hand();
  for (let k = 1; k <= 5; k++) await reach(add(tip, scaled(by, k / 5)), 3);
  await page.keyboard.press("2");
  await page.mouse.up();
}

const back = (tool) => (place) => {
  const way = sub(places.trocars[tool], place);
  return scaled(way, 0.02 / length(way));
};

const phases = {
  async hold() {
    await choose(0, ACROSS);
    await reach(await seen(places.hold));
    await page.mouse.down();
    await simulated(0.4);
    const { tip } = await hand();
    await reach(add(tip, [0.002, 0, 0.004]), 5);
    await page.keyboard.press("2"); // while the button is down: it stays clamped
    await page.mouse.up();
  },
  async free() {
    await choose(1, DOWN);
    for (let round = 0; round < 3; round++) {
      for (const path of places.fold) {
        if ((await measures()).calot_cleared > 66) return;
        await draw(path, [0, 0, 0.012]);
      }
    }
  },
  async lower() {
    await choose(1, ACROSS);
    for (let round = 0; round < 3; round++) {
      for (const path of places.lower) {
        if ((await measures()).critical_view === 1) return;
        await draw(path, back(1)(path[0]));
      }
    }
  },
  async clip() {
    await choose(2, ACROSS);
    for (const [k, place] of places.clips.entries()) {
      for (const out of [0.003, 0.0045, 0.0015]) {
        if ((await measures()).clips_held > k) break;
        const at = await seen(place), away = back(2)(at);
        await press(add(at, scaled(away, out / 0.02)), away, 0.3);
      }
    }
  },
  async cut() {
    await choose(3, ACROSS);
    for (const [k, place] of places.cuts.entries()) {
      for (const [aside, deeper] of [[0, 0.005], [-0.0025, 0.008], [0.0025, 0.008], [0, 0.007]]) {
        if ((await measures()).secured > (100 * (k + 0.5)) / places.cuts.length) break;
        const at = await seen(place), away = back(3)(at);
        await press(add(add(at, [0, aside, 0]), scaled(away, -deeper / 0.02)), away, 0.3);
      }
    }
  },
  async bed() {
    await lift([0.002, 0, 0.008]);
    await choose(1, ACROSS);
    for (let round = 0; round < 3; round++) {
      for (const path of places.bed) {
        if ((await measures()).freed === 100) return;
        await draw(path, back(1)(path[0]));
      }
      await lift([0, 0, 0.008]);
      await choose(1, ACROSS);
    }
  },
  async out() {
    await lift([0.005, 0, 0.05]);
    await simulated(0.5);
  },
};

await later(1000);
await shoot("begin");
for (const [name, phase] of Object.entries(phases)) {
  await phase();
  await shoot(name);
  if (name === last) break;
}
console.log(JSON.stringify({ found, errors, fps: await page.evaluate(() => window.viscera.stats()) }));
await close();
