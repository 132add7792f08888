// A tip that keeps its depth: it goes across the view in a plane, as far from the cursor's ray as it was when that began.

import { Matrix4, Vector3 } from "three";
import type { Camera, Ray } from "three";
import { depthOf, pointAtDepth } from "./reach";

export class Level {
  private depth = 0;
  private readonly aside = new Vector3();
  private readonly seenFrom = new Matrix4();

  constructor(private readonly last: Vector3, ray: Ray, camera: Camera) {
    this.anchor(ray, camera);
  }

  /** Where the tip is when the cursor's ray is this one; a view that turns leaves it where it is. */
  tip(ray: Ray, camera: Camera): Vector3 {
    if (!this.seenFrom.equals(camera.matrixWorld)) this.anchor(ray, camera);
    return this.last.copy(pointAtDepth(ray, camera, this.depth)).add(this.aside).clone();
  }

  private anchor(ray: Ray, camera: Camera): void {
    this.depth = depthOf(this.last, camera);
    this.aside.subVectors(this.last, pointAtDepth(ray, camera, this.depth));
    this.seenFrom.copy(camera.matrixWorld);
  }
}
