// What an address asks its page to do, as the palette's addresses do: `?do=new`, or `?do=open:7`.
import { useEffect } from "preact/hooks";
import { navigate, place } from "./route.ts";

/** Does it once, and removes it from the address, so that a reload does not do it again. */
export function useWish(acts: Readonly<Record<string, (about: string) => void>>): void {
  const { path, query } = place.value;
  const wish = query.get("do");
  useEffect(() => {
    if (wish === null) return;
    const end = wish.includes(":") ? wish.indexOf(":") : wish.length;
    const [name, about] = [wish.slice(0, end), wish.slice(end + 1)]; // the rest may hold any name, even colons
    navigate(path, { replace: true });
    if (Object.hasOwn(acts, name)) acts[name]?.(about);
  }, [wish]);
}
