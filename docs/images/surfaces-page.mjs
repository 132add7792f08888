// Draws docs/images/surfaces-page.png: node docs/images/surfaces-page.mjs [particles.f32]
//
// The page's liquid (web/src/look/fluid.ts) in a real Chromium with WebGL in software: the same particles as water, blood
// and barium over a chequered floor. Ends in a check: each look has its colour.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { openBrowser } from "../../tests/browser/browser.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const web = join(here, "../../web");
const require = createRequire(join(web, "package.json"));
const { build } = await import(require.resolve("vite"));
const WIDTH = 1200, HEIGHT = 400;

const HARNESS = `
import { Mesh, PerspectiveCamera, PlaneGeometry, Scene, ShaderMaterial, Vector2, Vector3, WebGLRenderer } from "three";
import { FluidSurface } from "${web}/src/look/fluid.ts";
import { FILM_GLSL, LIGHT_GLSL, PICTURE_GLSL, aimLight, makeLight } from "${web}/src/look/light.ts";

const renderer = new WebGLRenderer({ preserveDrawingBuffer: true });
renderer.setSize(${WIDTH / 3}, ${HEIGHT});
document.body.append(renderer.domElement);
const light = makeLight();
const floor = new Mesh(new PlaneGeometry(0.6, 0.6), new ShaderMaterial({
  uniforms: { ...light },
  vertexShader: "varying vec3 vPoint; varying vec2 vAt; void main() { vec4 p = modelViewMatrix * vec4(position, 1.0); vPoint = p.xyz; vAt = position.xy; gl_Position = projectionMatrix * p; }",
  fragmentShader: LIGHT_GLSL + PICTURE_GLSL + FILM_GLSL + \`
    varying vec3 vPoint; varying vec2 vAt;
    void main() {
      vec2 cell = floor(vAt / 0.01);
      float pale = mod(cell.x + cell.y, 2.0);
      vec3 colour = mix(vec3(0.30, 0.09, 0.07), vec3(0.62, 0.42, 0.34), pale);
      gl_FragColor = vec4(toScreen(colour * uLampPower / dot(vPoint, vPoint) * vignette() * 0.4) + dither(), 1.0);
    }\`,
}));
const scene = new Scene();
scene.add(floor);
const camera = new PerspectiveCamera(30, ${WIDTH / 3} / ${HEIGHT}, 0.004, 6);
camera.up.set(0, 0, 1);
camera.position.set(0.02, -0.15, 0.10);
camera.lookAt(0, 0, 0.006);
camera.updateMatrixWorld();

window.drawLook = (look, positions, spacing, pictures, software) => {
  const fluid = new FluidSurface(look, light, software, true);
  fluid.setParticle(0.75 * spacing, spacing ** 3);
  fluid.setParticles(new Float32Array(positions), positions.length / 3);
  const size = renderer.getDrawingBufferSize(new Vector2());
  aimLight(light, camera, new Vector3(0.2, 0.6, 0.77), camera.position.length(), size.clone().multiplyScalar(0.5), 0.62 * size.length());
  const gl = renderer.getContext(), pixel = new Uint8Array(4);
  const times = [];
  for (let i = 0; i < pictures; i++) {
    const begin = performance.now();
    fluid.draw(renderer, scene, camera);
    gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, pixel);
    times.push(performance.now() - begin);
  }
  const middle = new Uint8Array(4 * 40 * 40);
  gl.readPixels(size.x / 2 - 20, size.y / 2 - 20, 40, 40, gl.RGBA, gl.UNSIGNED_BYTE, middle);
  const mean = [0, 1, 2].map((k) => middle.reduce((sum, value, i) => sum + (i % 4 === k ? value : 0), 0) / 1600);
  const url = renderer.domElement.toDataURL("image/png");
  fluid.dispose();
  return { url, mean, ms: times.sort((a, b) => a - b)[times.length >> 1], error: gl.getError(), share: fluid.pixelShare() };
};
window.ready = true;
`;

/** A drop on the floor with a splash around it: a flattened heap, a crown and loose drops, by rule. */
function heap(spacing) {
  const positions = [];
  for (let x = -0.04; x <= 0.04; x += spacing) {
    for (let y = -0.04; y <= 0.04; y += spacing) {
      const r = Math.hypot(x, y), angle = Math.atan2(y, x);
      const rim = 0.030 + 0.006 * Math.sin(3 * angle) + 0.003 * Math.sin(7 * angle + 1);
      const top = 0.010 * Math.sqrt(Math.max(1 - (r / rim) ** 2, 0)) + (r < rim ? 0.0015 : 0);
      for (let z = 0.5 * spacing; z < top; z += spacing) {
        const jitter = (k) => 0.3 * spacing * Math.sin(1e4 * (x + 2 * y + 3 * z + k));
        positions.push(x + jitter(0), y + jitter(1), z + jitter(2));
      }
    }
  }
  for (let k = 0; k < 40; k++) {
    const angle = 2.4 * k, r = 0.036 + 0.012 * Math.abs(Math.sin(5 * k));
    positions.push(r * Math.cos(angle), r * Math.sin(angle), 0.001 + 0.012 * Math.abs(Math.sin(3 * k)) ** 3);
  }
  return positions;
}

const bundle = await build({
  root: web, configFile: false, logLevel: "error",
  plugins: [{
    name: "harness",
    resolveId: (id) => (id === "harness" ? id : undefined),
    load: (id) => (id === "harness" ? HARNESS : undefined),
  }],
  build: { write: false, minify: false, rollupOptions: { input: "harness" } },
});
const code = (Array.isArray(bundle) ? bundle[0] : bundle).output[0].code;

const spacing = 0.0016;
const positions = process.argv[2] ? [...new Float32Array(readFileSync(process.argv[2]).buffer)] : heap(spacing);
const { context, close } = await openBrowser({ width: WIDTH, height: HEIGHT });
try {
  const page = await context.newPage();
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  await page.setContent("<body style='margin:0;background:#000'></body>");
  await page.addScriptTag({ content: code, type: "module" });
  await page.waitForFunction("window.ready === true");
  const found = {};
  for (const look of ["water", "blood", "barium"]) {
    found[look] = await page.evaluate(([l, p, s]) => window.drawLook(l, p, s, 3, false), [look, positions, spacing]);
  }
  const few = positions.slice(0, 9000);
  const [alone, drawn] = await page.evaluate(([p, s]) => [[], p].map((q) => window.drawLook("water", q, s, 25, true).ms), [few, spacing]);
  await page.setContent(
    `<body style="margin:0;background:#000;display:flex">${Object.values(found).map(({ url }) => `<img src="${url}">`).join("")}</body>`,
  );
  await page.waitForTimeout(300);
  await page.screenshot({ path: join(here, "surfaces-page.png") });
  const colours = Object.fromEntries(Object.entries(found).map(([look, { mean }]) => [look, mean.map(Math.round)]));
  console.log(JSON.stringify({ particles: positions.length / 3, colours, errors }));
  console.log(`3 000 particles in ${WIDTH / 3} × ${HEIGHT} pixels: ${drawn.toFixed(1)} ms, the scene alone ${alone.toFixed(1)} ms`);
  const { water, blood, barium } = colours;
  if (errors.length > 0) throw new Error(errors.join("\n"));
  if (!(blood[0] > 1.5 * Math.max(blood[1], blood[2]))) throw new Error("blood is not red");
  if (!(Math.min(...barium) > 120 && Math.max(...barium) - Math.min(...barium) < 40)) throw new Error("barium is not white");
  if (!(water[0] > 40 && water[1] > blood[1] + 10)) throw new Error("nothing is seen through water");
} finally {
  await close();
}
