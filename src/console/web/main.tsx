// x
import { render } from "preact";
render(<p>Hi</p>, document.getElementById("app")!);
void import("./lazy.ts");
