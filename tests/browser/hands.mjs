// What a hand does in each drill with mouse and keys: `done` so that its goals are met, `failed` so that one cannot be met any more.
//
// `places` are those of the world that the hand has to know, in metres; `test_every_drill.py` finds them. Hands go by simulated time,
// so that a slow machine makes them slow and not wrong.

import { later, PATIENCE, until } from "./browser.mjs";

const LONG = 30 * PATIENCE; // [ms] for what takes a minute of simulated time, on a slow machine
const LONGEST = 240; // [s] of the world; what has not ended by then never does
const NOTCH = 100; // of a wheel; the page, drawn at half its size, goes 2 mm along the shaft for each

const clock = (page) => page.evaluate(() => window.viscera.frame.time);
const measure = (page, name) => page.evaluate((one) => window.viscera.measures()[one], name);
const drillTime = (page) => page.evaluate(() => window.viscera.drill().time);
const ended = (page) => page.evaluate(() => window.viscera.drill()?.phase === "ended");
const add = ([x, y, z], dx = 0, dy = 0, dz = 0) => [x + dx, y + dy, z + dz];

/** By the clock of the drill: heat, smoke and blood of a slow machine run later than its tissue, and it later than the wall's clock. */
export async function untilEnded(page) {
  await until(page, (v, longest) => v.drill()?.phase === "ended" || v.drill()?.time > longest, LONGEST, "the drill ends", LONG);
  await until(page, (v) => v.drill()?.phase === "ended", null, `the drill ends within ${LONGEST} s of its own`);
}

async function moveTo(page, place) {
  const at = await page.evaluate(([x, y, z]) => window.viscera.project(x, y, z), place);
  await page.mouse.move(at.x, at.y);
}

/** The instrument of this key, over the place. */
async function take(page, key, place) {
  await page.keyboard.press(String(key));
  await moveTo(page, place);
  await until(page, (v, number) => v.tools()[number].active, key - 1, `instrument ${key} comes in`);
  await wait(page, 0.25);
}

/** So long in the world [s], or until the drill is over. */
async function wait(page, seconds) {
  for (const end = (await clock(page)) + seconds; (await clock(page)) < end && !(await ended(page)); ) await later(30);
}

async function hold(page, seconds) {
  await page.mouse.down();
  await wait(page, seconds);
  await page.mouse.up();
}

/** Positive: deeper. */
async function wheel(page, notches) {
  for (let i = 0; i < Math.abs(notches); i++) {
    await page.mouse.wheel(0, -Math.sign(notches) * NOTCH);
    await later(20);
  }
}

/**
 * Along a line of places at this speed [m/s], to its end, until `enough`, or until the drill is over. Heat and blood of a busy machine run
 * later than its tissue: the hand goes by theirs, as one does that looks at what it burns.
 */
async function follow(page, places, speed, enough = () => false) {
  const lengths = [0];
  for (let i = 1; i < places.length; i++) lengths.push(lengths[i - 1] + Math.hypot(...places[i].map((value, axis) => value - places[i - 1][axis])));
  let [way, time] = [0, await clock(page)];
  for (;;) {
    // One question per step: a page that draws in software answers slowly.
    const seen = await page.evaluate(({ places, lengths, way, time, speed }) => {
      const { frame, project, drill, measures } = window.viscera;
      if (drill()?.phase === "ended") return null;
      const now = way + speed * frame.beside * (frame.time - time);
      const after = lengths.findIndex((length) => length >= now);
      const found = { way: now, time: frame.time, measures: measures() };
      if (after < 0) return { ...found, at: project(...places.at(-1)), last: true };
      const before = Math.max(0, after - 1);
      const share = after === before ? 0 : (now - lengths[before]) / (lengths[after] - lengths[before]);
      const place = places[before].map((value, axis) => value + share * (places[after][axis] - value));
      return { ...found, at: project(...place), last: false };
    }, { places, lengths, way, time, speed });
    if (seen === null || enough(seen.measures)) return;
    [way, time] = [seen.way, seen.time];
    await page.mouse.move(seen.at.x, seen.at.y);
    if (seen.last) return wait(page, 0.25);
  }
}

/** In slow motion, by the page's own buttons: a machine that draws in software moves a pointer in steps. */
async function slowly(page, run) {
  const speed = (name) => page.locator("#transport").getByRole("button", { name, exact: true }).click();
  await speed("0.25×");
  await run();
  await speed("1×");
}

function circle(middle, radius, count = 24) {
  return Array.from({ length: count + 1 }, (_, i) => add(middle, radius * Math.cos((2 * Math.PI * i) / count), radius * Math.sin((2 * Math.PI * i) / count)));
}

async function clip(page, key, place) {
  await take(page, key, place);
  const before = await page.evaluate(() => window.viscera.markers());
  await page.mouse.down();
  await until(page, (v, count) => v.markers() > count, before, "a clip is on");
  await page.mouse.up();
}

/** With the suction everywhere, until the drill is over. */
async function suckDry(page, key, rows) {
  await take(page, key, rows[0]);
  await page.mouse.down();
  for (let round = 0; round < 12 && !(await ended(page)); round++) await follow(page, round % 2 ? [...rows].reverse() : rows, 0.05);
  await page.mouse.up();
}

async function stick(page, key, place, count) {
  await take(page, key, place);
  await page.mouse.down();
  await until(page, (v, number) => v.measures().pins >= number, count, `pin ${count} sticks`);
  await page.mouse.up();
  await until(page, (v, number) => v.tools()[number].grip === 0, key - 1, "the handle is let go");
}

async function fourPins(page, { target }) {
  for (let pin = 1; pin <= 4; pin++) await stick(page, 2, add(target, 0.012 * pin - 0.03), pin);
}

/** Nothing but to look on. */
const lookOn = () => undefined;

/** Of the settings beside the picture, by the name of the parameter. */
export async function setting(page, name, value) {
  const field = page.locator(".parameter", { has: page.locator(`#parameter-${name}`) });
  await page.evaluate(() => document.querySelectorAll("details.settings-group").forEach((group) => (group.open = true)));
  await field.locator('input[type="number"]').fill(String(value));
  await page.keyboard.press("Enter");
}

/** A click in the second picture, at shares of its sides from the lower left corner. */
async function mark(page, [x, y]) {
  const box = await page.locator(".picture canvas").boundingBox();
  await page.mouse.click(box.x + x * box.width, box.y + (1 - y) * box.height);
  await later(400);
}

async function pedal(page, seconds) {
  const box = await page.locator(".pedal").boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await hold(page, seconds);
}

/** With the pedal down until pictures with the C-arm where it stands have come: the X-ray of a busy machine is late. */
async function look(page) {
  const [before, box] = [await measure(page, "fluoroscopy"), await page.locator(".pedal").boundingBox()];
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.mouse.down();
  await until(page, (v, least) => v.measures().fluoroscopy >= least, before + 0.4, "pictures are taken", LONG);
  await page.mouse.up();
}

/** Two pools of blood at most: both vessels clipped, the rest sucked up. */
async function clipAndSuck(page, { vessels, rows }, clips, suction) {
  for (const vessel of vessels) await clip(page, clips, vessel);
  await suckDry(page, suction, rows);
}

export const HANDS = {
  liver: {
    done: async (page, { target }) => {
      await stick(page, 2, target, 1);
      await page.locator("#drill summary.go").click();
      await page.getByRole("button", { name: "sure", exact: true }).click();
    },
    failed: fourPins,
  },
  cautery: {
    done: async (page, { line }) => {
      await slowly(page, async () => {
        await take(page, 1, line[0]);
        await page.mouse.down();
        await follow(page, line, 0.008);
        // What a pointer that moves in steps left out is gone over again, faster, since it is warm.
        for (let pass = 0; pass < 3 && !(await ended(page)); pass++) await follow(page, pass % 2 === 0 ? [...line].reverse() : line, 0.02);
        await page.mouse.up();
      });
    },
    failed: async (page, { line }) => {
      await take(page, 1, line[0]);
      await hold(page, 12);
    },
  },
  bleeding: { done: (page, places) => clipAndSuck(page, places, 4, 1), failed: lookOn, level: "Expert" },
  spurt: { done: (page, places) => clipAndSuck(page, places, 4, 2), failed: lookOn },
  hysteroscopy: {
    done: async (page, { vessels }) => {
      for (const [sealed, vessel] of vessels.entries()) {
        await take(page, 1, vessel);
        await page.mouse.down();
        await until(page, (v, left) => v.measures().open_vessels <= left, vessels.length - 1 - sealed, "a vessel is sealed", LONG);
        await page.mouse.up();
      }
      await page.keyboard.press("Escape");
    },
    failed: lookOn,
  },
  smoke: {
    done: async (page, { spot }) => {
      await slowly(page, async () => {
        await take(page, 1, add(spot, 0.008));
        await page.mouse.down();
        for (let round = 0; round < 4; round++) await follow(page, circle(spot, 0.008 + 0.002 * round), 0.012, ({ coagulated }) => coagulated > 85);
        await page.mouse.up();
      });
      await take(page, 2, spot);
      await wheel(page, -10);
      await page.mouse.down();
      await untilEnded(page);
      await page.mouse.up();
    },
    // What is charred takes no more current and smokes no more, so the hook goes on; nobody draws the smoke away.
    failed: async (page, { spot }) => {
      await take(page, 1, add(spot, 0.004));
      await page.mouse.down();
      for (let round = 0; round < 6 && !(await ended(page)); round++) await follow(page, circle(spot, 0.004 + 0.002 * round), 0.004);
      await page.mouse.up();
    },
  },
  incision: {
    done: async (page, { line }) => {
      await slowly(page, async () => {
        await take(page, 1, line[0]);
        await wheel(page, 3);
        await page.mouse.down();
        await follow(page, line, 0.02);
        await page.mouse.up();
      });
      await page.keyboard.press("Escape");
    },
    failed: async (page, { line: [first] }) => {
      const across = [-0.014, -0.007, 0.007, 0.014].flatMap((dy, row) => (row % 2 ? [add(first, 0, dy), add(first, 0.04, dy)] : [add(first, 0.04, dy), add(first, 0, dy)]));
      await take(page, 1, across[0]);
      await wheel(page, 3);
      await page.mouse.down();
      await follow(page, across, 0.02);
      await page.mouse.up();
    },
  },
  suture: {
    done: async (page, { slit }) => {
      await take(page, 1, slit);
      await hold(page, 1.5);
      await wait(page, 0.6);
      await take(page, 2, slit);
      await hold(page, 1.6);
      await wait(page, 0.3);
      await page.keyboard.press("Escape");
    },
    failed: async (page, { slit }) => {
      const aside = [add(slit, 0.008, -0.012), add(slit, 0.008, 0.012)];
      await take(page, 4, aside[0]);
      await wheel(page, 6);
      await page.mouse.down();
      await follow(page, aside, 0.02);
      await page.mouse.up();
    },
  },
  artery: {
    done: async (page, { top }) => {
      await clip(page, 3, add(top, -0.008));
      await take(page, 5, add(top, 0.012));
      await wheel(page, 3);
      await page.mouse.down();
      await wait(page, 0.3);
      await wheel(page, -8);
      await until(page, (v) => v.measures().pulled >= 0.3, null, "the vessel is pulled");
      await page.keyboard.press("1");
      await page.mouse.up();
      await cutAcross(page, top);
    },
    failed: cutAcross,
  },
  pattern: {
    done: (page, { middle, bites }) => cutOut(page, middle, bites),
    failed: async (page, { middle }) => {
      for (let bite = 0; bite < 12 && !(await ended(page)); bite++) await snip(page, add(middle, 0.009 * Math.cos(bite), 0.009 * Math.sin(bite)));
    },
    level: "Proficient",
  },
  barium: {
    done: async (page, { polyps, script }) => {
      for (const [across, along, place] of polyps) {
        await setting(page, "across", across);
        await setting(page, "along", along);
        await look(page);
        await mark(page, place);
      }
      // From now on: a slow page has taken its time for the polyps.
      const begun = await drillTime(page);
      for (const [at, name, value] of script) {
        if (await ended(page)) return;
        await wait(page, begun + at - (await drillTime(page)));
        await setting(page, name, value);
      }
      // What is still dry is reached by rolling on, head down and head up, as long as it takes.
      for (let side = 0; !(await ended(page)) && (await drillTime(page)) < LONGEST; side++) {
        await setting(page, "tilt", side % 2 ? 45 : -30);
        await setting(page, "roll", [90, -90, 180, 0][side % 4]);
        await wait(page, 7);
      }
    },
    failed: async (page) => {
      await pedal(page, 1);
      for (let miss = 0; miss < 4; miss++) await mark(page, [0.03, 0.03 + 0.02 * miss]);
    },
  },
};

async function cutAcross(page, places) {
  const top = Array.isArray(places) ? places : places.top;
  const line = [add(top, 0.001, -0.016), add(top, 0.001, 0.016)];
  await take(page, 1, line[0]);
  await wheel(page, 10); // the tip 20 mm deeper: below the vessel, and the edge, 22 mm of it, still reaches above
  await wait(page, 0.3);
  await page.mouse.down();
  await follow(page, line, 0.03);
  await page.mouse.up();
  await page.keyboard.press("Escape");
}

const ANGLE = 0.12; // [rad] that scissors may stand off the way they cut; a slow page turns them by 0.18 rad at a time
const BITE = 3; // notches below the sheet, as deep as the scenario's own hand
const OFF = [640, 700]; // [pixel] over the bar below the picture: the instrument in the hand goes out, what is clamped stays
const ROUND = 40; // bites once around
const BRIDGES = 12; // that are snipped after it
const TURNS = 40; // after which they cut as they are: gauze may hold them

/** Keys Q and E turn the instrument about its shaft, until its x axis points this way over the table [rad]. */
async function turnTo(page, tool, angle) {
  const off = async () => {
    const [x, y, z, w] = await page.evaluate((number) => window.viscera.tools()[number].orientation, tool);
    const now = Math.atan2(2 * (x * y + w * z), 1 - 2 * (y * y + z * z));
    const left = angle - now;
    return left - Math.PI * Math.round(left / Math.PI); // both jaws cut
  };
  for (let [left, turns] = [await off(), 0]; Math.abs(left) > ANGLE && turns < TURNS; left = await off(), turns++) {
    const key = left > 0 ? "q" : "e";
    await page.keyboard.down(key);
    await later(Math.min(400, (1000 * Math.abs(left)) / 2.5));
    await page.keyboard.up(key);
    await later(60);
  }
}

/** Where a place of the gauze is now that it hangs and is drawn: near the vertex `near`, as far from it as ever. */
function placeNow(page, { near, off }) {
  return page.evaluate(([number, away]) => away.map((value, axis) => value + window.viscera.vertices("gauze")[3 * number + axis]), [near, off]);
}

/**
 * One bite of the scissors: over the place, down, closed, out. Shafts lean, so that deeper is farther out: one looks where the tip would
 * go, and goes back over the place.
 */
async function snip(page, place, angle = 0) {
  await moveTo(page, place);
  await until(page, (v) => v.tools()[0].active, null, "the scissors come in");
  await turnTo(page, 0, angle);
  const drawn = await page.evaluate(() => window.viscera.stats().framesDrawn);
  await wheel(page, BITE);
  await until(page, (v, count) => v.stats().framesDrawn > count, drawn + 2, "the scissors go down");
  const tip = await page.evaluate(() => window.viscera.tip());
  await moveTo(page, [2 * place[0] - tip[0], 2 * place[1] - tip[1], place[2]]);
  await wait(page, 0.1);
  await hold(page, 0.12);
  await page.mouse.move(...OFF); // gauze holds what has closed in it; the hand comes in again from above
  await until(page, (v) => !v.tools()[0].active, null, "the scissors go out");
}

/** From above, where no fold hides the line: the grasper lifts the middle and stays; then bite by bite around the circle, until the disc is free. */
async function cutOut(page, middle, bites) {
  await page.locator('summary[aria-label="View"]').click();
  await page.getByRole("button", { name: "From above", exact: true }).click();
  await later(1000);
  await take(page, 2, middle);
  await page.mouse.down();
  await wait(page, 0.2);
  await wheel(page, -2);
  await page.keyboard.press("1");
  await page.mouse.up();
  for (const [number, bite] of bites.entries()) {
    if (await ended(page)) break;
    await snip(page, await placeNow(page, bite), bite.angle);
    if ((number + 1) % ROUND === 0) await snipBridges(page, bite.radius);
  }
  await page.keyboard.press("Escape");
}

/** Bites that run beside each other leave bridges. What still holds the disc is seen, and snipped across. */
async function snipBridges(page, radius) {
  for (let count = 0; count < BRIDGES && !(await ended(page)); count++) {
    const bridge = await page.evaluate(findBridge, radius);
    if (bridge === null) return;
    await snip(page, bridge.place, bridge.angle);
  }
}

/** Over drawn triangles, from the middle of the gauze outwards: where that way crosses the circle, and the direction across it. */
function findBridge(radius) {
  const places = window.viscera.vertices("gauze"), corners = window.viscera.triangles("gauze");
  const count = places.length / 3, beside = Array.from({ length: count }, () => []);
  for (let k = 0; k < corners.length; k += 3) {
    const [a, b, c] = [corners[k], corners[k + 1], corners[k + 2]];
    if (a === b || b === c || c === a) continue; // kept for cuts to come
    beside[a].push(b, c);
    beside[b].push(a, c);
    beside[c].push(a, b);
  }
  const far = (i) => Math.hypot(places[3 * i], places[3 * i + 1]);
  let start = 0;
  for (let i = 0; i < count; i++) if (beside[i].length && places[3 * i + 2] > places[3 * start + 2] - 0.01 && far(i) < far(start)) start = i;
  const from = new Int32Array(count).fill(-1), queue = [start];
  from[start] = start;
  let end = -1;
  for (let at = 0; at < queue.length && end < 0; at++) {
    for (const next of beside[queue[at]]) {
      if (from[next] >= 0) continue;
      from[next] = queue[at];
      if (far(next) > 1.5 * radius) end = next;
      queue.push(next);
    }
  }
  if (end < 0) return null;
  const way = [end];
  while (way[0] !== start) way.unshift(from[way[0]]);
  const at = way.reduce((best, i, k) => (Math.abs(far(i) - radius) < Math.abs(far(way[best]) - radius) ? k : best), 0);
  const [one, other] = [way[Math.max(at - 2, 0)], way[Math.min(at + 2, way.length - 1)]];
  const along = Math.atan2(places[3 * other + 1] - places[3 * one + 1], places[3 * other] - places[3 * one]);
  return { place: [...places.slice(3 * way[at], 3 * way[at] + 3)], angle: along + Math.PI / 2 };
}
