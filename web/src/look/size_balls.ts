// Particles of several sizes as balls: red ones are large, blue ones small, as in Elmasdotter's pictures.

import { BufferAttribute, BufferGeometry, DynamicDrawUsage, Points, ShaderMaterial, Vector2 } from "three";
import type { Camera, PerspectiveCamera, WebGLRenderer } from "three";
import { FILM_GLSL, LIGHT_GLSL, PICTURE_GLSL } from "./light";
import type { LightUniforms } from "./light";

/** Radius of the smallest over that of the largest: half the volume. */
const SMALLEST = Math.cbrt(0.5);

export class SizeBalls {
  readonly points: Points<BufferGeometry, ShaderMaterial>;
  count = 0;
  private readonly geometry = new BufferGeometry();

  constructor(light: LightUniforms) {
    const material = new ShaderMaterial({
      name: "size balls", vertexShader: VERTEX, fragmentShader: FRAGMENT,
      uniforms: { ...light, uRadius: { value: 0.01 }, uPixels: { value: 1 }, uSmallest: { value: SMALLEST } },
    });
    this.points = new Points(this.geometry, material);
    this.points.frustumCulled = false; // its bounds change with every frame
    this.points.visible = false;
    this.points.onBeforeRender = (renderer, _scene, camera) => this.scale(renderer, camera);
  }

  /** [m] */
  setRadius(radius: number): void {
    this.points.material.uniforms.uRadius.value = radius;
  }

  /** The first `count` at `positions` (x, y, z each [m]); `shares` is how small each is, 0 to 1. Both are copied. */
  set(positions: Float32Array, count: number, shares: Float32Array): void {
    const room = this.geometry.attributes.position as BufferAttribute | undefined;
    if (room === undefined || room.count < count) this.makeRoom(Math.max(256, Math.ceil(1.5 * count)));
    const place = this.geometry.attributes.position as BufferAttribute;
    const share = this.geometry.attributes.share as BufferAttribute;
    (place.array as Float32Array).set(positions.subarray(0, 3 * count));
    (share.array as Float32Array).set(shares.subarray(0, count));
    place.needsUpdate = share.needsUpdate = true;
    this.geometry.setDrawRange(0, count);
    this.count = count;
    this.points.visible = count > 0;
  }

  private makeRoom(capacity: number): void {
    this.geometry.dispose();
    this.geometry.setAttribute("position", new BufferAttribute(new Float32Array(3 * capacity), 3).setUsage(DynamicDrawUsage));
    this.geometry.setAttribute("share", new BufferAttribute(new Float32Array(capacity), 1).setUsage(DynamicDrawUsage));
  }

  private scale(renderer: WebGLRenderer, camera: Camera): void {
    const { uniforms } = this.points.material;
    const height = renderer.getDrawingBufferSize(new Vector2()).y;
    uniforms.uPixels.value = 0.5 * height * (camera as PerspectiveCamera).projectionMatrix.elements[5];
  }
}

const VERTEX = /* glsl */ `
uniform float uRadius;
uniform float uPixels; // of one metre at a distance of one metre
uniform float uSmallest;
attribute float share;
varying vec3 vCentre;
varying float vShare;
varying float vRadius;

void main() {
  vec4 centre = modelViewMatrix * vec4(position, 1.0);
  vCentre = centre.xyz;
  vShare = share;
  vRadius = 0.62 * uRadius * mix(1.0, uSmallest, share); // balls side by side, not into each other
  gl_PointSize = 2.0 * vRadius * uPixels / -centre.z;
  gl_Position = projectionMatrix * centre;
}
`;

const FRAGMENT = /* glsl */ `
${LIGHT_GLSL}
${PICTURE_GLSL}
${FILM_GLSL}
varying vec3 vCentre;
varying float vShare;
varying float vRadius;

const vec3 LARGE = vec3(0.55, 0.035, 0.025);
const vec3 SMALL = vec3(0.020, 0.10, 0.62);

void main() {
  vec2 across = 2.0 * gl_PointCoord - 1.0;
  float r2 = dot(across, across);
  if (r2 > 1.0) discard;
  vec3 normal = vec3(across.x, -across.y, sqrt(1.0 - r2));
  vec3 toLamp = uLamp - vCentre;
  float lamp = uLampPower / dot(toLamp, toLamp);
  vec3 body = mix(LARGE, SMALL, vShare) * (0.25 + 0.75 * max(dot(normal, normalize(toLamp)), 0.0));
  gl_FragColor = vec4(toScreen(body * lamp), 1.0);
}
`;
