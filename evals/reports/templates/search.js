const box = document.querySelector(".search");
if (box) {
  const items = [...document.querySelectorAll("[data-find]")].map((item) => [item, item.textContent.toLowerCase()]);
  box.hidden = false;
  box.addEventListener("input", () => {
    const wanted = box.value.toLowerCase().trim();
    for (const [item, text] of items) {
      item.hidden = !text.includes(wanted);
      for (const part of item.querySelectorAll("details")) {
        part.open = wanted !== "" && part.textContent.toLowerCase().includes(wanted);
      }
    }
    for (const group of document.querySelectorAll("[data-group]")) {
      group.hidden = !group.querySelector("[data-find]:not([hidden])");
      if (wanted) group.open = true;
    }
  });
}
