// The console's first file in the browser: draws the app and finds out who is signed in.
import { render } from "preact";
import { App } from "./app.tsx";
import { keepFocus } from "./parts/kept-focus.ts";
import { followLinks } from "./route.ts";
import { loadTexts } from "./texts.ts";

followLinks();
keepFocus();
const root = document.getElementById("app");
if (root === null) throw new Error("index.html has no #app");
// No await: with one, the bundler makes many files of what every page needs.
void loadTexts("first").then(() => render(<App />, root));
