// The operation through the page of a real server, by mouse and keys alone: hold, free, clip, cut, part the bed, dry it, take out.
//
//     node tests/browser/operation.mjs ADDRESS FOLDER PLACES [LAST]
//
// PLACES is JSON of places in the tissue at rest [m], by the phase that goes there, and of where the trocars are. The hand
// sees where they are now by the surface that the page draws, and how far it is by the measures in the page. It works in slow
// motion, by the page's own button, since a page that draws in software moves a pointer in steps. Pictures of each phase go
// into FOLDER, measures to stdout; `tests/browser/test_operation.py` judges both. LAST is the last phase.

import { join } from "node:path";
import { later, started } from "./browser.mjs";
import { operatingPage } from "./operating_page.mjs";
import { phasesOf } from "./operation_phases.mjs";

const [address, folder, given, last = "out"] = process.argv.slice(2);
const places = JSON.parse(given);
await started(address);
const { page, errors, hand, shoot, close } = await operatingPage(address, places);
const found = {};
const QUICK = 12; // pictures per second, from which on a hand needs less slow motion

async function note(name) {
  await shoot(join(folder, `operation-${name}.png`));
  const now = await hand.look();
  found[`operation-${name}`] = { ...now.measures, at: now.time, force_of_grasper: now.tools[0].force };
  console.error(name, JSON.stringify(found[`operation-${name}`]));
}

await note("begin");
await later(1500);
const { framesPerSecond } = await page.evaluate(() => window.viscera.stats());
await hand.speed(framesPerSecond > QUICK ? "0.25×" : "0.1×");
for (const [name, phase] of Object.entries(phasesOf(hand, places))) {
  await phase();
  await note(name);
  if (name === last) break;
}
console.log(JSON.stringify({ found, errors, fps: await page.evaluate(() => window.viscera.stats()) }));
await close();
