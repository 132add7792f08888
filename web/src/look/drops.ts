// Drops in the air, too small for `fluid.ts`, which draws with fewer pixels than the picture has: one lit ball each.
//
// Blood is dark where it is thick: a drop shows the lamp in it, and a red rim where light finds its way through. A drop that
// is drawn larger than it is hides less, and its highlight is spread over all of it. A drop is stretched along its velocity,
// as long as it flies in the time of a picture's exposure, and thinner, so that its volume stays (Andersson §2.6.2).

import { BufferAttribute, BufferGeometry, DynamicDrawUsage, Points, ShaderMaterial, Vector2 } from "three";
import type { Camera, PerspectiveCamera, WebGLRenderer } from "three";
import { FILM_GLSL, LIGHT_GLSL, PICTURE_GLSL } from "./light";
import type { LightUniforms } from "./light";

/** Smaller particles are drawn as drops [m]. */
export const LARGEST_DROP = 0.0008;
/** A drop is never drawn smaller than this, so that it is seen as one: radius in pixels of the window. */
const LEAST_PIXELS = 2.0;
/** In which a drop draws its streak [s]. Tuned for appearance. */
const EXPOSURE = 0.003;
/** Length over width of the most stretched drop. */
const LONGEST = 3.5;

export class Drops {
  readonly points: Points<BufferGeometry, ShaderMaterial>;
  count = 0;
  private readonly geometry = new BufferGeometry();

  constructor(light: LightUniforms) {
    const material = new ShaderMaterial({
      name: "drops", transparent: true, vertexShader: VERTEX, fragmentShader: FRAGMENT,
      uniforms: { ...light, uRadius: { value: 0.0004 }, uPixels: { value: 1 }, uLeast: { value: LEAST_PIXELS }, uExposure: { value: EXPOSURE } },
    });
    this.points = new Points(this.geometry, material);
    this.points.frustumCulled = false; // its bounds change with every frame
    this.points.renderOrder = 1; // after what is seen through them
    this.points.visible = false;
    this.points.onBeforeRender = (renderer, _scene, camera) => this.scale(renderer, camera);
  }

  /** [m] */
  setRadius(radius: number): void {
    this.points.material.uniforms.uRadius.value = radius;
  }

  /**
   * The first `count` at `positions` (x, y, z each [m]); `shares` is how much of each is blood, 0 to 1; `velocities` x, y, z
   * each [m/s]. All are copied.
   */
  set(positions: Float32Array, count: number, shares: Float32Array, velocities: Float32Array): void {
    const room = this.geometry.attributes.position as BufferAttribute | undefined;
    if (room === undefined || room.count < count) this.makeRoom(Math.max(256, Math.ceil(1.5 * count)));
    const place = this.geometry.attributes.position as BufferAttribute;
    const share = this.geometry.attributes.share as BufferAttribute;
    (place.array as Float32Array).set(positions.subarray(0, 3 * count));
    (share.array as Float32Array).set(shares.subarray(0, count));
    const velocity = this.geometry.attributes.velocity as BufferAttribute;
    (velocity.array as Float32Array).set(velocities.subarray(0, 3 * count));
    place.needsUpdate = share.needsUpdate = velocity.needsUpdate = true;
    this.geometry.setDrawRange(0, count);
    this.count = count;
    this.points.visible = count > 0;
  }

  private makeRoom(capacity: number): void {
    this.geometry.dispose();
    this.geometry.setAttribute("position", new BufferAttribute(new Float32Array(3 * capacity), 3).setUsage(DynamicDrawUsage));
    this.geometry.setAttribute("share", new BufferAttribute(new Float32Array(capacity), 1).setUsage(DynamicDrawUsage));
    this.geometry.setAttribute("velocity", new BufferAttribute(new Float32Array(3 * capacity), 3).setUsage(DynamicDrawUsage));
  }

  private scale(renderer: WebGLRenderer, camera: Camera): void {
    const { uniforms } = this.points.material;
    const height = renderer.getDrawingBufferSize(new Vector2()).y;
    uniforms.uPixels.value = 0.5 * height * (camera as PerspectiveCamera).projectionMatrix.elements[5];
    uniforms.uLeast.value = LEAST_PIXELS * renderer.getPixelRatio();
  }
}

const VERTEX = /* glsl */ `
uniform float uRadius;
uniform float uPixels; // of one metre at a distance of one metre
uniform float uLeast;
uniform float uExposure;
attribute float share;
attribute vec3 velocity;
varying vec3 vCentre;
varying float vShare;
varying float vTrue; // drawn as large as it is: 1; larger: less
varying vec3 vAlong; // on the screen, of length 1, where it flies; how much longer than a ball's it is drawn there

void main() {
  vec4 centre = modelViewMatrix * vec4(position, 1.0);
  vCentre = centre.xyz;
  vShare = share;
  float pixels = uRadius * uPixels / -centre.z;
  vTrue = min(pixels / uLeast, 1.0);
  vec3 flies = mat3(modelViewMatrix) * velocity;
  // As the eye sees it: what flies towards it has no length.
  vec2 streak = uExposure * (flies.xy - flies.z * centre.xy / centre.z);
  float length_ = length(streak);
  float stretch = min(1.0 + length_ / (2.0 * uRadius), ${LONGEST.toFixed(1)});
  vAlong = vec3(length_ > 1e-9 ? streak / length_ : vec2(1.0, 0.0), stretch);
  gl_PointSize = 2.0 * max(pixels, uLeast) * max(stretch * inversesqrt(stretch), 1.0);
  // As far away as the ball's near side, so that it is whole just above tissue.
  centre.xyz *= 1.0 - min(uRadius / length(centre.xyz), 0.5);
  gl_Position = projectionMatrix * centre;
}
`;

const FRAGMENT = /* glsl */ `
${LIGHT_GLSL}
${PICTURE_GLSL}
${FILM_GLSL}
varying vec3 vCentre;
varying float vShare;
varying float vTrue;
varying vec3 vAlong;

// What a ball of each gives back; tuned for appearance, beside the film on tissue.
const vec3 BLOOD = vec3(0.075, 0.0030, 0.0028);
const vec3 BLOOD_RIM = vec3(0.170, 0.0070, 0.0055);
const vec3 SALINE = vec3(0.030, 0.034, 0.038);

void main() {
  // The point is as large as the streak is long; across it the ball is narrower by the square root of its stretch, twice.
  vec2 spot = vec2(2.0 * gl_PointCoord.x - 1.0, 1.0 - 2.0 * gl_PointCoord.y);
  vec2 across = vec2(dot(spot, vAlong.xy), vAlong.z * dot(spot, vec2(-vAlong.y, vAlong.x)));
  float r2 = dot(across, across);
  float edge = max(fwidth(across.x), fwidth(across.y));
  float cover = 1.0 - smoothstep(1.0 - 2.0 * edge, 1.0, r2);
  if (cover <= 0.0) discard;
  vec2 turned = across.x * vAlong.xy + across.y * vec2(-vAlong.y, vAlong.x);
  vec3 normal = vec3(turned, sqrt(max(1.0 - r2, 0.0)));
  vec3 toLamp = uLamp - vCentre;
  float lamp = uLampPower / dot(toLamp, toLamp) * vignette();
  toLamp = normalize(toLamp);
  vec3 body = mix(SALINE, mix(BLOOD, BLOOD_RIM, r2 * r2), vShare) * (0.35 + 0.65 * max(dot(normal, toLamp), 0.0));
  float nh = max(dot(normal, normalize(toLamp - normalize(vCentre))), 0.0);
  // Within one pixel of the lamp's image there is more than the image.
  float shine = smoothstep(0.965, 0.99, nh) * clamp(0.25 / edge - 0.35, 0.06, 1.0) * vTrue;
  vec3 colour = (body + 0.22 * shine) * lamp;
  // Clear fluid shows its rim, where it bends the light away, and the lamp in it.
  float hides = max(mix(0.10 + 0.35 * r2 * r2, 0.95, smoothstep(0.0, 0.4, vShare)) * mix(0.6, 1.0, vTrue), 0.8 * shine);
  gl_FragColor = vec4(toScreen(colour), cover * hides);
}
`;
