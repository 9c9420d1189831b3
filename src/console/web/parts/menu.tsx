// A button with a list of actions below it. It lies above everything, so that no scrolled list cuts it off.
import type { VNode } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Icon, type IconName } from "./icons.tsx";

type MenuProps = Readonly<{
  label: string;
  icon?: IconName;
  items: readonly Readonly<{ caption: string; icon: IconName; act: () => void; isDanger?: boolean }>[];
}>;

export function Menu({ label, icon = "more", items }: MenuProps): VNode {
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const [isOpen, setOpen] = useState(false);
  useLayoutEffect(() => {
    if (!isOpen) return;
    const [of, own] = [button.current!.getBoundingClientRect(), list.current!.getBoundingClientRect()];
    const isBelow = of.bottom + own.height < innerHeight;
    list.current!.style.top = `${isBelow ? of.bottom + 4 : Math.max(8, of.top - own.height - 4)}px`;
    list.current!.style.left = `${Math.max(8, Math.min(of.left, innerWidth - own.width - 8))}px`;
    list.current!.querySelector("button")?.focus();
  }, [isOpen]);
  const move = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    const all = [...list.current!.querySelectorAll("button")];
    const at = all.indexOf(document.activeElement as HTMLButtonElement);
    all[(at + step + all.length) % all.length]?.focus();
  };
  return (
    <>
      <button
        ref={button}
        type="button"
        class="icon-button"
        aria-label={label}
        aria-haspopup="menu"
        popovertarget={id}
        title={label}
      >
        <Icon name={icon} size={16} />
      </button>
      <div
        ref={list}
        id={id}
        class="action-menu"
        role="menu"
        aria-label={label}
        popover="auto"
        onToggle={(event) => setOpen(event.newState === "open")}
        onKeyDown={move}
      >
        {(isOpen ? items : []).map(({ caption, icon: own, act, isDanger = false }) => (
          <button
            key={caption}
            type="button"
            role="menuitem"
            class={isDanger ? "danger-quiet" : undefined}
            onClick={() => {
              list.current?.hidePopover();
              act();
            }}
          >
            <Icon name={own} size={16} /> {caption}
          </button>
        ))}
      </div>
    </>
  );
}
