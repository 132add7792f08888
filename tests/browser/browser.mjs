// Opens the page in a real Chromium. WebGL runs in software there, so that any machine can look at pixels.

import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

const require = createRequire(new URL("../../web/package.json", import.meta.url));
const { chromium } = require("playwright-core");
export const { decode } = require("@msgpack/msgpack");

const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
  "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run", "--mute-audio",
];
/** A busy machine is slow; a page that works is done long before. Where others take all of it, `VISCERA_PATIENCE` gives more. */
export const PATIENCE = Number(process.env.VISCERA_PATIENCE ?? 30_000); // [ms]

/** A browser with a profile of its own, both gone after `close()`. With a `scale` below 1 it draws fewer pixels, and leaves the machine to the world. */
export async function openBrowser({ width = 1280, height = 720, touch = false, flags = [], scale } = {}) {
  const profile = mkdtempSync(join(tmpdir(), "viscera-browser-"));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.VISCERA_BROWSER ?? "/usr/bin/chromium",
    headless: true, args: [...FLAGS, ...flags], viewport: { width, height }, hasTouch: touch, deviceScaleFactor: scale,
  });
  context.setDefaultTimeout(PATIENCE);
  const close = async () => {
    await context.close();
    rmSync(profile, { recursive: true, force: true });
  };
  return { context, close };
}

/** A page on `address` that notes its errors; unless told otherwise, once it has drawn a first frame. */
export async function openPage(context, address, { wait = true, hint = false, before } = {}) {
  await before?.();
  const page = await context.newPage();
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error") errors.push(message.text());
  });
  if (!hint) await page.addInitScript(() => window.localStorage.setItem("viscera.hint-seen", "1"));
  await page.goto(address);
  if (wait) await until(page, (viscera) => typeof viscera?.firstFrame === "number", null, "a first frame is drawn");
  return { page, errors };
}

/** The first time kernels are compiled, which takes longer than a page waits. */
export async function started(address) {
  for (const end = Date.now() + 4 * PATIENCE; Date.now() < end; await later(200)) {
    // A server closes lines on which nothing is asked for seconds, and a busy machine asks late: then it is asked again.
    const health = await fetch(new URL("/api/health", address)).then((answer) => answer.json()).catch(() => ({ tick: 0 }));
    if (health.tick > 0) return;
  }
  throw new Error("the session never starts");
}

/** Runs each check on its own page, one after the other, and prints what they found as one line of JSON. */
export async function runChecks(context, address, checks) {
  const found = {};
  for (const [name, check] of Object.entries(checks)) {
    const begin = Date.now();
    let page;
    try {
      const opened = await openPage(context, address, check.options);
      page = opened.page;
      const figures = (await check(page, opened.errors)) ?? {};
      found[name] = { ok: true, errors: opened.errors, ...figures };
    } catch (error) {
      found[name] = { ok: false, error: String(error?.stack ?? error) };
    }
    await page?.close();
    found[name].seconds = (Date.now() - begin) / 1000;
  }
  console.log(JSON.stringify(found));
}

export function assert(condition, message) {
  if (!condition) throw new Error(message);
}

export function later(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/**
 * Waits until `test` of the page's handle and `value` holds, and says what was there if it never does. It asks from
 * here, because the page's own policy forbids the evaluation that Playwright's waiting needs.
 */
export async function until(page, test, value, what, patience = PATIENCE) {
  const question = `(${test.toString()})(window.viscera, ${JSON.stringify(value ?? null)})`;
  for (const end = Date.now() + patience; Date.now() < end; await later(40)) {
    if (await page.evaluate(question)) return;
  }
  const state = await page.evaluate(() => ({
    frame: window.viscera.frame, tools: window.viscera.tools(), tip: window.viscera.tip(), parameters: window.viscera.parameters(),
    line: document.body.dataset.line, session: document.body.dataset.session, banners: document.getElementById("banners").innerText,
  }));
  throw new Error(`never: ${what}; the page has ${JSON.stringify(state)}`);
}
