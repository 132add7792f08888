// A frame of its own for the camera and for the landmark model (MediaPipe Face Mesh, Apache-2.0): the model's code makes functions
// from text, which the rest of the page must not be allowed to. It sees the camera's pictures; the page gets a few landmarks of
// each, and no picture leaves this frame. What it posts: { landmarks } or { lost } once per picture, { failed } once.

/* global document, parent, location, navigator, requestAnimationFrame, FaceMesh */
"use strict";

// Corners and lids of both eyes, middles of the irises, forehead, chin, nose, temples.
const WANTED = [33, 133, 159, 145, 468, 362, 263, 386, 374, 473, 10, 152, 1, 234, 454];
const MODEL = "./webcam/";
const SIZE = { width: { ideal: 640 }, height: { ideal: 480 } };

const video = document.querySelector("video");
const post = (message) => parent.postMessage({ from: "viscera-webcam", ...message }, location.origin);

function loadScript(address) {
  return new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = address;
    script.onload = done;
    script.onerror = () => failed(new Error("The landmark model is not installed: python hatch_build.py webcam"));
    document.head.append(script);
  });
}

async function watch() {
  await loadScript(`${MODEL}face_mesh.js`);
  const stream = await navigator.mediaDevices.getUserMedia({ video: SIZE, audio: false });
  video.srcObject = stream;
  await video.play();
  const mesh = new FaceMesh({ locateFile: (file) => MODEL + file });
  mesh.setOptions({ maxNumFaces: 1, refineLandmarks: true, minDetectionConfidence: 0.5, minTrackingConfidence: 0.5 });
  mesh.onResults(({ multiFaceLandmarks }) => {
    const face = multiFaceLandmarks?.[0];
    if (face === undefined || face.length < 478) post({ lost: true });
    else post({ landmarks: WANTED.map((k) => [face[k].x * video.videoWidth, face[k].y * video.videoHeight]) });
  });
  for (;;) {
    await mesh.send({ image: video });
    await new Promise(requestAnimationFrame);
  }
}

watch().catch((error) => post({ failed: error instanceof Error ? error.message : String(error) }));
