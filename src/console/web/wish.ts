// What a page is asked to do by its address, as the palette does: `?do=new`, or `?do=open:7`.
import { useEffect } from "preact/hooks";
import { navigate, place } from "./route.ts";

/** Done once: the address goes back to the page's own, so that a reload does not do it again. */
export function useWish(acts: Readonly<Record<string, (about: string) => void>>): void {
  const { path, query } = place.value;
  const wish = query.get("do");
  useEffect(() => {
    if (wish === null) return;
    const end = wish.includes(":") ? wish.indexOf(":") : wish.length;
    const [name, about] = [wish.slice(0, end), wish.slice(end + 1)]; // what it is about may be any name
    navigate(path, { replace: true });
    if (Object.hasOwn(acts, name)) acts[name]?.(about);
  }, [wish]);
}
