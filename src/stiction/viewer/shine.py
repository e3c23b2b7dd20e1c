"""Contact forces and friction cones are seen through bodies, on the pages that viser makes.

A contact lies between bodies, and so does most of a short arrow. viser draws whatever is nearer and has no option for
this, but three.js announces each scene to whoever listens as its developer tools do. There each arrow gets a second
material, which is drawn, weaker, where something is in front of it; friction cones are drawn on everything.
"""

from __future__ import annotations

SHINE = 0.62  # weight of an arrow that is behind a body
CONE_OPACITY = 0.35  # of friction cones, which are known by it

# Arrows are instances of a cylinder and of a cone, and nothing else on our pages is. Depths are compared by one of
# three.js's numbers: 6 is "greater".
SCRIPT = """<script>{
  const tools = window.__THREE_DEVTOOLS__ ??= new EventTarget();
  const seen = new WeakSet();
  const isArrow = (mesh) => /^(Cylinder|Cone)Geometry$/.test(mesh.geometry.type) && mesh.geometry.index;
  const isCone = (mesh) => mesh.material.transparent && Math.abs(mesh.material.opacity - CONE_OPACITY) < 1e-6;
  const shine = (mesh) => {
    if (!mesh.isInstancedMesh2 || seen.has(mesh) || mesh.castShadow) return;
    seen.add(mesh);
    if (isArrow(mesh)) {
      const behind = mesh.material.clone();
      Object.assign(behind, { transparent: true, opacity: SHINE, depthFunc: 6, depthWrite: false });
      mesh.geometry.clearGroups();
      for (const place of [0, 1]) mesh.geometry.addGroup(0, mesh.geometry.index.count, place);
      mesh.material = [mesh.material, behind];
    } else if (isCone(mesh)) {
      Object.assign(mesh.material, { depthTest: false, depthWrite: false });
      mesh.renderOrder = 1;
    }
  };
  tools.addEventListener("observe", ({ detail: scene }) => {
    if (scene.isScene) scene.onBeforeRender = () => scene.traverse(shine);
  });
}</script>""".replace("CONE_OPACITY", str(CONE_OPACITY)).replace("SHINE", str(SHINE))
