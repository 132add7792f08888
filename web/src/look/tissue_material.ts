// Wet tissue: a thin clear film of fluid over flesh that scatters light.
//
// Colour, vessels and bumps are functions of the rest position, so they stay on the tissue when it moves. The film
// reflects like water (F0 = 0.025, refractive index about 1.37): surface tension keeps it smoother than the tissue below, so
// that a lamp's reflection is one bright spot with a clear edge over a soft sheen. Bumps that are too large on the screen to
// pass for texture fade as the eye comes near, and turn into width of the highlight. Light that enters comes out nearby: each colour has its own soft edge of the light, red the
// softest. Where WebGL runs in software (`plain`), shadows and mottling are computed per vertex. `skin_shader.ts` has what
// burns and blood do to this.

import { Color, DoubleSide, ShaderMaterial, Vector2, Vector3 } from "three";
import type { Data3DTexture, DataTexture, IUniform } from "three";
import { FILM_GLSL, LIGHT_GLSL, MOST_TOOLS, PICTURE_GLSL, SPARK_GLSL, TOOL_SHADE_GLSL, standOn } from "./light";
import type { LightUniforms } from "./light";
import { SKIN_GLSL } from "./skin_shader";
import type { SkinTexture } from "./skin_texture";
import type { Texture } from "../protocol";

interface Look {
  base: string;
  pale: string;
  deep: string;
  vessel: number;
  bumps: number;
  /** Of the clear film of fluid. */
  coat: number;
  /** 0 lets light in like tissue, 1 does not. */
  dry?: number;
  /** Of what a cut opens, where it is not flesh. */
  inner?: string;
}

/** How much stronger the film shines than a lamp of this brightness makes it; tuned for appearance. */
const FILM_GAIN = 2.6;

/** Of what a cut in tissue opens, sRGB; tuned for appearance. */
const FLESH = "#842e29";

/** sRGB colours tuned for appearance under a white lamp. */
const LOOKS: Record<string, Look> = {
  tissue: { base: "#b54138", pale: "#d07766", deep: "#7c1d20", vessel: 1.0, bumps: 1.0, coat: 1 },
  liver: { base: "#632a1f", pale: "#7d4030", deep: "#38130d", vessel: 0.2, bumps: 0.7, coat: 1 },
  fat: { base: "#dba95a", pale: "#efd08c", deep: "#b9742f", vessel: 0.6, bumps: 1.3, coat: 1 },
  vessel: { base: "#b5403c", pale: "#d0776a", deep: "#7a1c20", vessel: 0.5, bumps: 0.6, coat: 1 },
  skin: { base: "#c98f74", pale: "#e0b59a", deep: "#a9604c", vessel: 0.1, bumps: 0.8, coat: 0.25, dry: 0.35 },
  gauze: { base: "#dcdcd6", pale: "#f2f2ee", deep: "#b9bcbb", vessel: 0, bumps: 1.2, coat: 0.02, dry: 0.8, inner: "#d2d3cf" },
  earth: { base: "#55503a", pale: "#7d7a58", deep: "#3a3020", vessel: 0, bumps: 1.6, coat: 0.06, dry: 1 },
};

export interface TissueTextures {
  noise: Data3DTexture;
  vessels: DataTexture;
}

/** What a scene paints on a surface, and what the eye wants to see of it. */
export interface Skin {
  burn: SkinTexture<Texture> | null;
  ink: SkinTexture<Texture> | null;
  film: SkinTexture<Texture> | null;
  /** How a burn looks, by its level. */
  stages: DataTexture;
  /** 1 shows temperatures instead of tissue. */
  heatView: IUniform<number>;
  /** Whether the surface may be cut, and shows what is inside. */
  cut: boolean;
}

export function makeTissueMaterial(
  look: string, light: LightUniforms, textures: TissueTextures, plain: boolean, skin: Skin,
): ShaderMaterial {
  const { base, pale, deep, vessel, bumps, coat, dry, inner } = LOOKS[look] ?? LOOKS.tissue;
  standOn(light, dry === 1 ? "earth" : "flesh");
  const linear = (hex: string) => {
    const c = new Color(hex);
    return new Vector3(c.r, c.g, c.b);
  };
  return new ShaderMaterial({
    name: `tissue ${look}`,
    side: DoubleSide,
    defines: definesOf(skin, plain),
    uniforms: {
      ...light,
      ...skinUniforms(skin),
      uNoise: { value: textures.noise },
      uVessels: { value: textures.vessels },
      uBase: { value: linear(base) },
      uPale: { value: linear(pale) },
      uDeep: { value: linear(deep) },
      uVesselAmount: { value: vessel },
      uBumps: { value: bumps },
      uCoat: { value: coat },
      uDry: { value: dry ?? 0 },
      uInner: { value: linear(inner ?? FLESH) },
      uInnerDry: { value: inner === undefined ? 0 : (dry ?? 0) },
      uPress: { value: 0 },
    },
    vertexShader: VERTEX,
    fragmentShader: FRAGMENT,
  });
}

function definesOf({ burn, ink, film, cut }: Skin, plain: boolean): Record<string, number> {
  const wanted = { PLAIN: plain, BURN: burn !== null, INK: ink !== null, FILM: film !== null, CUT: cut };
  const on = Object.entries({ ...wanted, PAINTED: cut || wanted.BURN || wanted.INK || wanted.FILM }).filter(([, there]) => there);
  return Object.fromEntries(on.map(([name]) => [name, 1]));
}

function skinUniforms({ burn, ink, film, stages, heatView }: Skin): Record<string, IUniform> {
  const uniforms: Record<string, IUniform> = { uHeatView: heatView };
  if (burn !== null) Object.assign(uniforms, { uBurn: { value: burn.texture }, uStages: { value: stages } });
  if (ink !== null) uniforms.uInk = { value: ink.texture };
  if (film !== null) {
    const size = new Vector2(film.info.width, film.info.height);
    const dye = { uDye: { value: new Vector3(...film.info.absorption) }, uDyeBody: { value: new Vector3(...film.info.body) } };
    Object.assign(uniforms, { uFilm: { value: film.texture }, uFilmSize: { value: size }, ...dye });
  }
  return uniforms;
}

const VERTEX = /* glsl */ `
precision highp sampler3D;
${LIGHT_GLSL}
${TOOL_SHADE_GLSL}
uniform sampler3D uNoise;
attribute vec3 rest;
attribute vec3 restNormal;
attribute float hollow;
varying vec3 vPoint;
varying vec3 vNormal;
varying vec3 vRest;
varying vec3 vSheets; // how much each of the three vessel sheets shows here
varying vec2 vBroad; // hollowness, broad mottling
varying vec3 vWave; // slope of the broad waves of the film, view space
#ifdef PLAIN
varying vec2 vShade;
#endif
#ifdef PAINTED
varying vec2 vUv;
#endif

const float COARSE = 1.0 / 0.131; // [1/m], one tile

void main() {
  vec4 point = modelViewMatrix * vec4(position, 1.0);
  vPoint = point.xyz;
  vNormal = normalize(normalMatrix * normal);
  vRest = rest;
  #ifdef PAINTED
  vUv = uv;
  #endif
  vec3 w = restNormal * restNormal;
  w *= w;
  vSheets = w / (w.x + w.y + w.z + 1e-6);
  vec4 coarse = textureLod(uNoise, rest.zxy * COARSE + 0.71, 0.0) * 2.0 - 1.0;
  vBroad = vec2(hollow, coarse.a);
  vWave = mat3(viewMatrix) * coarse.yzx;
  #ifdef PLAIN
  vShade = toolShade(vPoint, vNormal);
  #endif
  gl_Position = projectionMatrix * point;
}
`;

const FRAGMENT = /* glsl */ `
precision highp sampler3D;
${LIGHT_GLSL}
${PICTURE_GLSL}
${FILM_GLSL}
${TOOL_SHADE_GLSL}
${SPARK_GLSL}
uniform sampler3D uNoise;
uniform sampler2D uVessels;
uniform vec3 uBase;
uniform vec3 uPale;
uniform vec3 uDeep;
uniform float uVesselAmount;
uniform float uBumps;
uniform float uCoat;
uniform float uDry;
uniform vec3 uInner;
uniform float uInnerDry;
uniform float uPress;
uniform float uHeatView;
varying vec3 vPoint;
varying vec3 vNormal;
varying vec3 vRest;
varying vec3 vSheets;
varying vec2 vBroad;
varying vec3 vWave;
#ifdef PLAIN
varying vec2 vShade;
#endif
#ifdef PAINTED
varying vec2 vUv;
#endif

// Sizes of one tile [1/m]; its features are an eighth of it. Odd ratios hide the repetition.
const float FINE = 1.0 / 0.0071;
const float MIDDLE = 1.0 / 0.0263;
const float SHEET = 1.0 / 0.083;
const float F0 = 0.025;
const vec2 STANDS = vec2(0.0003, 0.0008); // [m] deep fluid is a pool: between the two its surface becomes level
const float STEEPEST = 1.5; // one over the squared slope that a border never reaches

vec2 vesselsAt(vec3 p) {
  vec2 seen = vec2(0.0);
  if (vSheets.z > 0.02) seen += vSheets.z * texture(uVessels, p.xy * SHEET).rg;
  if (vSheets.x > 0.02) seen += vSheets.x * texture(uVessels, p.yz * SHEET + 0.31).rg;
  if (vSheets.y > 0.02) seen += vSheets.y * texture(uVessels, p.zx * SHEET + 0.63).rg;
  return seen;
}

// Beckmann's lobe, pressed into the disc that a lamp is: its image has an edge, where a lobe alone would be a fog.
// exp(−x) is (1 + x/8)⁻⁸ here, which is cheaper in software and as good to the eye.
float mirrored(float nh, float a2) {
  float narrow = 1.0 / a2;
  float lobe = 1.0 / (1.0 + 0.125 * narrow * (1.0 - nh * nh));
  lobe *= lobe;
  lobe *= lobe;
  lobe *= lobe;
  return (0.6 * lobe + 0.4 * clamp(2.5 * lobe - 1.0, 0.0, 1.0)) * narrow / PI;
}

float glossy(float nh, float alpha) {
  float a2 = alpha * alpha;
  float d = nh * nh * (a2 - 1.0) + 1.0;
  return a2 / (PI * d * d);
}

vec3 fleshColour(float broad, float middle, vec2 vessels, float blanched) {
  vec3 colour = mix(uBase, uPale, smoothstep(0.0, 1.0, 0.30 + 0.50 * broad + 0.16 * middle));
  colour = mix(colour, uDeep, 0.45 * smoothstep(0.0, 0.8, -0.55 * broad + 0.20 * middle));
  colour = mix(colour, uDeep * vec3(0.55, 0.45, 0.75), uVesselAmount * 0.45 * vessels.g);
  colour = mix(colour, uDeep * vec3(0.62, 0.20, 0.22), uVesselAmount * 0.5 * vessels.r * (1.0 - blanched));
  // Pressed tissue loses its blood and pales.
  return mix(colour, vec3(0.62, 0.36, 0.27), 0.6 * blanched);
}

float blanching() {
  float pale = 0.0;
  if (uPress > 0.0) {
    for (int i = 0; i < ${MOST_TOOLS}; i++) {
      if (i >= uToolCount) break;
      float gap = (length(vPoint - uToolTip[i].xyz) - uToolTip[i].w) / uToolTip[i].w;
      pale = max(pale, 1.0 - smoothstep(0.0, 0.75, gap));
    }
  }
  return pale * uPress;
}

vec3 bent(vec3 normal, vec3 slope, float amount) {
  return normalize(normal - amount * (slope - dot(slope, normal) * normal));
}

${SKIN_GLSL}
// A lamp's own image over a broad sheen; 'dull' is 0 for a fresh wet coat. Standing fluid has the image alone.
float coatShine(float nh, float a2, float dull, float fluid) {
  float spot = mix(0.20, 0.24, fluid) * (1.0 - 0.8 * dull) * mirrored(nh, mix(a2, 0.09, dull));
  return spot + mix(0.30, 0.06, fluid) * glossy(nh, mix(0.30, 0.5, dull));
}

void main() {
  vec3 smoothNormal = normalize(vNormal) * (gl_FrontFacing ? 1.0 : -1.0);
  vec4 fine = texture(uNoise, vRest * FINE) * 2.0 - 1.0;
  vec4 middle = texture(uNoise, vRest.yzx * MIDDLE + 0.37) * 2.0 - 1.0;
  vec3 eye = normalize(-vPoint);

  float blanched = blanching() * (1.0 - uDry);
  vec2 vessels = vesselsAt(vRest + 0.0014 * middle.xyz);
  Skin skin = Skin(fleshColour(vBroad.y, middle.a, vessels, blanched), uDry, 0.0, 0.0, uCoat, 37.0);
  bool inside = false, bare = false; // the face of a cut; one without texels
  #ifdef PAINTED
  vec2 place = vUv; // in the textures
  #endif
  #ifdef CUT
  // Faces that a cut opened have their places less 2, or −3 where they have none. Flesh is wet and dark there, whatever
  // covers the outside.
  inside = vUv.x < -0.5;
  bare = vUv.x < -2.5;
  if (inside) place += 2.0;
  if (inside) skin = Skin(uInner * (1.0 + 0.35 * middle.a + 0.25 * fine.a), uInnerDry, 0.0, 0.0, 1.0 - uInnerDry, 37.0);
  #endif
  #ifdef INK
  if (!inside) inkSkin(skin, texture(uInk, vUv), fine);
  #endif
  #ifdef BURN
  vec4 burn = bare ? vec4(0.0) : texture(uBurn, place);
  if (!bare) burnSkin(skin, burn, fine, middle);
  #endif

  // Char is a crust: coarse and dry.
  float bumps = uBumps * (1.0 + 3.5 * skin.charred);
  mat3 turned = mat3(viewMatrix);
  vec3 wave = 0.26 * vWave;
  vec3 folds = bumps * 0.15 * (turned * middle.zxy);
  vec3 ripple = bumps * 0.10 * (turned * fine.xyz);
  vec3 fleshNormal = bent(smoothNormal, wave + folds + 1.6 * skin.charred * ripple, 0.8);
  // One pixel on the tissue [m]: from far away fine bumps are texture, from near they would tear the highlights.
  vec3 spread = fwidth(vPoint);
  float pixel = spread.x + spread.y;
  float coarse = max(max(skin.rough, 0.5 * uDry), smoothstep(0.0002, 0.0016, pixel));
  vec3 film = wave + mix(0.26, 0.55, coarse) * folds + mix(0.05, 0.25, coarse) * ripple;
  float sharp = 0.0030; // alpha²
  float dry = inside ? uInnerDry : uDry;
  float dull = max(skin.rough, dry);
  vec3 flesh = skin.flesh;
  float wet = 0.0; // 1 where there is fluid
  float level = 0.0; // 1 where it is deep enough to stand
  float standing = 0.0; // 1 where it is a pool
  #ifdef FILM
  Fluid fluid = fluidAt(place, vPoint, smoothNormal);
  if (fluid.height > 0.0 && !bare) {
    // Fluid fills the bumps below it and lies smooth; clots are a jelly.
    wet = smoothstep(0.000002, 0.00002, fluid.height);
    level = fluid.stands;
    float jelly = smoothstep(0.35, 0.85, fluid.parts.z);
    vec3 still = 0.6 * wave + 0.35 * jelly * (folds + ripple);
    // Fluids that wet tissue meet it at no steep angle.
    vec3 border = fluid.slope * inversesqrt(1.0 + STEEPEST * dot(fluid.slope, fluid.slope));
    film = mix(film, still, level) + border;
    standing = smoothstep(STANDS.x, STANDS.y, fluid.height) * smoothstep(0.6, 0.85, dot(smoothNormal, uUp));
    sharp = mix(sharp, mix(0.0024, 0.014, jelly), level);
    dull *= 1.0 - wet;
    skin.coat = mix(skin.coat, 1.0 - 0.45 * jelly, wet);
    flesh = through(flesh, fluid, max(dot(smoothNormal, eye), 0.0));
  }
  #endif
  // What stands deep is level, whatever the ground below it.
  vec3 filmNormal = normalize(mix(bent(smoothNormal, film, 1.0), uUp, standing));
  // Where the surface turns within a pixel its highlight is as wide as that turn (Tokuyoshi and Kaplanyan 2019).
  vec3 turn = fwidth(filmNormal);
  sharp += min(0.4 * dot(turn, turn), 0.18);

  #ifdef PLAIN
  vec2 shade = vShade;
  #else
  vec2 shade = toolShade(vPoint, smoothNormal);
  #endif
  vec3 toLamp = uLamp - vPoint;
  float reach = inversesqrt(dot(toLamp, toLamp));
  toLamp *= reach;
  float rim = vignette();
  float lamp = uLampPower * reach * reach * rim;
  float room = uLampPower / dot(vPoint, vPoint) * rim;
  float open = clamp(1.0 - 1.8 * vBroad.x, 0.4, 1.08) * shade.y;

  // Red light travels farthest in tissue: it sees the smoothest normal and creeps farthest into shadow. Coagulated tissue
  // scatters it back sooner.
  vec2 facing = vec2(dot(smoothNormal, toLamp), dot(fleshNormal, toLamp));
  facing.x = mix(facing.x, facing.y, skin.covered);
  vec3 wrap = mix(vec3(0.42, 0.20, 0.14), vec3(0.14, 0.12, 0.11), skin.covered);
  vec3 lit = max((facing.xyy + wrap) / (1.0 + wrap), 0.0);
  float s = shade.x;
  vec3 shadow = mix(vec3(s * (2.0 - s), s * (0.65 + 0.35 * s), s * (0.6 + 0.4 * s)), vec3(s), skin.covered);
  vec3 colour = flesh * lit * lit * shadow * mix(vec3(1.0), vec3(open), vec3(mix(0.7, 1.0, uDry), 1.0, 1.0)) * lamp;

  // A little light comes back from the surroundings: warm from other tissue, cool from the room above.
  float sky = 0.5 + 0.5 * dot(fleshNormal, uUp);
  vec3 below = mix(vec3(0.050, 0.022, 0.018), vec3(0.026), uDry);
  colour += flesh * open * room * mix(below, vec3(0.026, 0.032, 0.038), sky);
  colour += flesh * sparkLight(vPoint, fleshNormal) * rim;

  float nh = max(dot(filmNormal, normalize(toLamp + eye)), 0.0);
  float nv = max(dot(filmNormal, eye), 0.05);
  float shine = F0 * coatShine(nh, sharp, dull, level) / (4.0 * mix(nv, 1.0, 0.5));
  colour += vec3(1.0, 0.97, 0.93) * shine * s * lamp * step(0.0, dot(filmNormal, toLamp)) * FILM_GAIN * skin.coat;
  float grazing = 1.0 - nv;
  float fresnel = F0 + (1.0 - F0) * grazing * grazing * grazing * grazing * grazing;
  vec3 away = reflect(-eye, filmNormal);
  float nt = max(dot(filmNormal, normalize(uTheatreLamp + eye)), 0.0);
  float lights = 0.50 * mirrored(nt, mix(sharp, 0.16, dull)) + 0.22 * smoothstep(-0.3, 0.9, dot(away, uUp));
  colour += vec3(0.86, 0.95, 1.0) * fresnel * lights * open * room * 0.30 * mix(1.0, 1.5, wet) * skin.coat;

  vec3 shown = toScreen(colour);
  #ifdef BURN
  shown = toScreen(colour + heatGlow(skin.celsius) * (1.0 - wet));
  if (uHeatView > 0.0) {
    float shape = 0.45 + 0.55 * max(facing.y, 0.0);
    shown = mix(shown, heatColour(skin.celsius) * shape * min(rim * 1.4, 1.0) + 0.12 * shine * lamp, uHeatView);
  }
  #endif
  gl_FragColor = vec4(shown + dither(), 1.0);
}
`.replace("FILM_GAIN", FILM_GAIN.toFixed(2));
