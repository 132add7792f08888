// What the hand of operation.mjs does in each phase of the operation.

import { later } from "./browser.mjs";
import { ACROSS, add, DOWN, length, scaled, sub } from "./steady_hand.mjs";

const [GRASPER, HOOK, CLIPS, SCISSORS, BIPOLAR, SUCTION, IRRIGATOR, EVACUATOR] = [0, 1, 2, 3, 4, 5, 6, 7];
const BESIDE = [-0.01, -0.02, 0.045]; // where an instrument comes in, in front of and above the field [m]
const SPEED = 0.02; // of a hook through tissue [m/s], simulated
const PULLS = 0.001; // of a hand that pulls, between two looks [m]
const STEP = 0.0012; // of a hand that draws [m]
const LAGS = 0.003; // more than this from its hand: tissue holds it back [m]
const HANGS = 0.15; // [s] until it is lifted out
const LIFT = 0.012, BACK = 0.02; // above, or back along the shaft: outside of tissue [m]
const RAISED = 0.001; // of the layer under the gall bladder, while that is lifted [m]
const CLEARED = 64; // of the triangle; the judge wants 60 [%]
const CLEAR = 0.0075; // tips stay above the liver [m]
export const HURT = "hurt"; // the phase that no operation has

/** By name, in their order; `places` are those of the tissue at rest [m]. */
export function phasesOf(hand, places) {
  const { page } = hand;

  /** From a place out of tissue: up for a foot that points down, else back along the shaft [m]. */
  function away(tool, side, place, far = BACK) {
    if (side === DOWN) return [0, 0, LIFT];
    const shaft = sub(places.trocars[tool], place);
    return scaled(shaft, far / length(shaft));
  }

  /** The grasper draws to so far from where it takes hold at rest, and stays clamped there; one that holds nothing takes hold first [m]. */
  async function pull(by) {
    await hand.wipe();
    const held = await hand.holds(GRASPER);
    await hand.choose(GRASPER, BESIDE);
    if (!held) {
      await hand.turnTo(ACROSS);
      const at = await hand.seen(places.hold);
      await hand.reach(add(at, away(GRASPER, ACROSS, at)), 0.002);
      await hand.reach(at, 0.0006, 0.004);
      await hand.comes();
      await hand.down();
      await hand.simulated(0.3);
    }
    await hand.reach(add(places.hold, by), 0.001, PULLS, 60);
    await page.keyboard.press(String(HOOK + 1)); // it stays clamped, also while the button is down
    if (hand.closed) await hand.up();
  }

  /** Under current along places of the tissue at rest; a hook that hangs is lifted out and goes in again farther on. */
  async function draw(path, side, raised = null) {
    const seen = async () => (raised === null ? (await hand.look(path)).seen : path.map((place) => add(place, [0, 0, raised])));
    let way = await seen();
    await hand.reach(add(way[0], away(HOOK, side, way[0])), 0.002, 0.02, 12);
    await hand.reach(way[0], 0.0008, 0.008);
    const there = await hand.comes(0.0015, side === DOWN ? 0.05 : 0.5);
    if (!there && side !== DOWN && (await hand.behind()) > LAGS) {
      await hand.reach(add(way[0], away(HOOK, side, way[0])), 0.002, 0.02, 8);
      return;
    }
    await hand.down();
    let hung = 0, before = (await hand.look()).time;
    for (let k = 1; k < way.length; k++) {
      way = await seen();
      for (let looks = 0; looks < 60; looks++) {
        const now = await hand.look();
        const passed = now.time - before;
        before = now.time;
        if (length(sub(now.tip, now.is)) > LAGS) {
          hung += passed;
          if (hung > HANGS) break;
          if (hand.closed && side !== DOWN) await hand.up();
          await later(15);
          continue;
        }
        if (!hand.closed) await hand.down();
        const far = await hand.step(way[k], Math.min(STEP, SPEED * Math.max(passed, 0.01)), now);
        if (far === Infinity) return; // it came out of the picture
        if (far < 0.0012) break;
      }
      if (hung > HANGS) {
        await hand.up();
        const on = way[k];
        await hand.reach(add(on, away(HOOK, side, on)), 0.003, 0.02, 8);
        if (side !== DOWN) return;
        await hand.reach(on, 0.001, 0.006);
        await hand.down();
        await hand.simulated(0.05);
        [hung, before] = [0, (await hand.look()).time];
      }
    }
    await hand.up();
    const end = way.at(-1);
    await hand.reach(add(end, away(HOOK, side, end, BACK + length(sub(end, way[0])))), 0.003, 0.02, 10);
  }

  /** The hook beside duct and artery, round after round, each time deeper, until enough of the fold is parted. */
  async function freeTubes(enough) {
    for (const ways of [places.fold[0], ...places.fold, ...places.fold.slice(1)]) {
      if (await enough()) return;
      await hand.wipe();
      await hand.choose(HOOK, BESIDE);
      await hand.turnTo(DOWN);
      for (const way of ways) {
        if (await enough()) return;
        await draw(way, DOWN);
        console.error("fold", JSON.stringify((await hand.measures()).calot_cleared), (await hand.look()).time.toFixed(1));
      }
    }
  }

  /** Jaws come to a place, close, and leave. */
  async function press(tool, place, seconds = 0.25) {
    const at = [place[0], place[1], Math.max(place[2], CLEAR)];
    await hand.reach(add(at, away(tool, ACROSS, at)), 0.002, 0.02, 12);
    await hand.reach(at, 0.0006, 0.006);
    await hand.comes(0.001, 0.4);
    await hand.down();
    await hand.simulated(seconds);
    // It leaves while it is closed, so that its jaws do not drag along what lies between them.
    await hand.reach(add(at, away(tool, ACROSS, at)), 0.003, 0.02, 8);
    await hand.up();
  }

  return {
    /** With the hook through the common duct, here and there, until the trial is failed. */
    async [HURT]() {
      await hand.choose(HOOK, BESIDE);
      await hand.turnTo(DOWN);
      for (const path of places.common) await draw(path, DOWN);
    },
    async hold() {
      await pull(places.light);
    },
    async open() {
      await hand.choose(HOOK, BESIDE);
      await hand.turnTo(DOWN);
      await draw(places.fold[0][0], DOWN);
    },
    async free() {
      await freeTubes(() => hand.measures().then(({ calot_cleared }) => calot_cleared > CLEARED));
    },
    async lower() {
      await pull(places.more);
      await hand.choose(HOOK, BESIDE);
      await hand.turnTo(ACROSS);
      for (let round = 0; round < 3; round++) {
        for (const path of places.lower) {
          if ((await hand.measures()).critical_view === 1) return;
          await draw(path, ACROSS, RAISED);
        }
      }
      // What sank back into the triangle meanwhile.
      await freeTubes(() => hand.measures().then(({ critical_view }) => critical_view === 1));
    },
    async clip() {
      await pull(places.light);
      await hand.choose(CLIPS, BESIDE);
      await hand.turnTo(ACROSS);
      for (const place of places.clips) {
        const before = (await hand.measures()).clips_held;
        for (const [aside, out] of [[0, 0.003], [0, 0.0045], [0.001, 0.0015], [0.002, 0.004], [0.001, 0]]) {
          if ((await hand.measures()).clips_held > before) break;
          const at = await hand.seen(add(place.at, [place.towards * aside, 0, 0]));
          await press(CLIPS, add(at, away(CLIPS, ACROSS, at, out)), 0.16);
        }
      }
    },
    async cut() {
      await hand.wipe();
      await hand.choose(SCISSORS, BESIDE);
      await hand.turnTo(ACROSS);
      for (const [k, place] of places.cuts.entries()) {
        for (const [aside, deeper] of [[0, 0], [-0.0025, 0.003], [0.0025, 0.003], [0, 0.003], [-0.003, 0], [0.003, 0]]) {
          if ((await hand.measures()).secured > (100 * (k + 0.5)) / places.cuts.length) break;
          const at = await hand.seen(place);
          await press(SCISSORS, add(add(at, [0, aside, 0]), away(SCISSORS, ACROSS, at, -0.005 - deeper)), 0.16);
        }
      }
      for (const place of places.across) {
        const at = await hand.seen(place);
        await press(SCISSORS, add(at, away(SCISSORS, ACROSS, at, -0.005)), 0.16);
      }
    },
    async bed() {
      await pull(places.most);
      for (const higher of [[0, 0, 0], ...places.higher]) {
        if (higher[2] > 0) await pull(higher);
        await hand.choose(HOOK, BESIDE);
        await hand.turnTo(ACROSS);
        for (const path of places.bed) {
          if ((await hand.measures()).freed === 100) return;
          await draw(path, ACROSS, RAISED);
        }
      }
    },
    async dry() {
      for (const [tool, rows, seconds] of [[BIPOLAR, places.coagulated, 2], [IRRIGATOR, places.rinsed, 0.6], [SUCTION, places.sucked, 1.5]]) {
        await hand.choose(tool, BESIDE);
        for (const [from, to] of rows) {
          await hand.reach(add(from, away(tool, ACROSS, from)), 0.002);
          await hand.reach(from, 0.0008, 0.006);
          await hand.down();
          for (let begin = (await hand.look()).time, share = 0; share < 1; ) {
            const now = await hand.look();
            share = Math.min(1, (now.time - begin) / seconds);
            await hand.step(add(from, scaled(sub(to, from), share)), Infinity, now);
            await later(20);
          }
          await hand.up();
          await hand.reach(add(to, away(tool, ACROSS, to)), 0.003);
        }
      }
    },
    async out() {
      await pull(places.out);
      await page.keyboard.press(String(EVACUATOR + 1));
      await hand.simulated(0.5);
    },
  };
}
