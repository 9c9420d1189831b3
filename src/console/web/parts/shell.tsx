// Surrounds every page of a signed-in account with the navigation: at the side, or at the bottom on a phone.
import type { ComponentChildren, VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { count } from "../format.ts";
import {
  accountGroups,
  accountPages,
  isShown,
  moreOperatorPages,
  nameOf,
  operatorPages,
  pageAt,
  type PageEntry,
} from "../pages.ts";
import { PaletteButton, PaletteHost, PaletteIconButton } from "../palette/door.tsx";
import { place } from "../route.ts";
import { account, live, numbers, operatorNumbers, sells, session, signOut } from "../session.ts";
import { Dialog } from "./dialog.tsx";
import { Icon, Mark } from "./icons.tsx";
import { ThemeChoice } from "./theme-choice.tsx";
import { strong } from "./inline.tsx";
import { toast } from "./toasts.tsx";
import { IconButton } from "./button.tsx";
import { rich, t } from "../texts.ts";

/** On a phone, the others are behind "More". */
const phonePages = accountPages.filter(({ path }) => ["/", "/playground", "/key", "/usage"].includes(path));

/** After a page was shown. */
const nextPagesMs = 3_000;

export function Shell({ children }: { children: ComponentChildren }): VNode {
  const [menuOpen, setMenuOpen] = useState(false);
  const closeMenu = (): void => setMenuOpen(false);
  useNextPages();
  return (
    <div class="shell">
      <a class="skip-link" href="#content">
        {t("shell.skip")}
      </a>
      <aside class="side">
        <div class="side-inner">
          <Brand />
          <PaletteButton />
          <Navigation />
          <SideFoot />
        </div>
      </aside>
      <header class="top">
        <Brand />
        <div>
          <Balance />
          <PaletteIconButton />
        </div>
      </header>
      <main id="content">
        {session.value?.demo === true && <DemoNotice />}
        {!live.value && (
          <p class="notice quiet-notice" role="status">
            <Icon name="refresh" size={16} /> {t("shell.interrupted")}
          </p>
        )}
        {children}
      </main>
      <nav class="tabs" aria-label={t("shell.main")}>
        {phonePages.map((page) => (
          <NavigationLink key={page.path} page={page} />
        ))}
        <button type="button" aria-haspopup="dialog" aria-expanded={menuOpen} onClick={() => setMenuOpen(true)}>
          <Icon name="menu" />
          <span>{t("shell.more")}</span>
          <AlertDot />
        </button>
      </nav>
      {menuOpen && (
        <Dialog title={t("shell.menu")} kind="sheet" onClose={closeMenu}>
          <div
            class="menu"
            onClick={(event) => event.target instanceof Element && event.target.closest("a") && closeMenu()}
          >
            <Navigation />
            <SideFoot />
          </div>
        </Dialog>
      )}
      <PaletteHost />
    </div>
  );
}

/** What people may open next, once nothing else is to be done; not where each byte counts. */
function useNextPages(): void {
  useEffect(() => {
    const { connection } = navigator as { connection?: { effectiveType?: string; saveData?: boolean } };
    if (connection?.saveData === true || /[23]g$/.test(connection?.effectiveType ?? "")) return;
    const shown = [...accountPages.filter(isShown), ...(account.value?.operator === true ? operatorPages : [])];
    const load = (): void => shown.forEach((page) => void page.load().catch(() => {})); // asked again when it is opened
    const timer = setTimeout(() => requestIdleCallback(load), nextPagesMs);
    return () => clearTimeout(timer);
  }, []);
}

const Brand = (): VNode => (
  <a class="brand" href="/" aria-label={t("shell.home")}>
    <Mark />
    <span>Tollgate</span>
  </a>
);

const Navigation = (): VNode => (
  <nav class="navigation" aria-label={t("shell.pages")}>
    {accountGroups.map(({ name, pages }) => (
      <>
        {name !== null && <h2 class="navigation-group">{t(name)}</h2>}
        <Links pages={pages.filter(isShown)} />
      </>
    ))}
    {account.value?.operator === true && (
      <>
        <h2 class="navigation-group">{t("shell.operator")}</h2>
        <Links pages={operatorPages} />
        <details open={moreOperatorPages.some((page) => page === pageAt(place.value.path))}>
          <summary class="navigation-group">{t("shell.more")}</summary>
          <Links pages={moreOperatorPages} />
        </details>
      </>
    )}
  </nav>
);

const Links = ({ pages }: { pages: readonly PageEntry[] }): VNode => (
  <ul>
    {pages.map((page) => (
      <li key={page.path}>
        <NavigationLink page={page} />
      </li>
    ))}
  </ul>
);

/** Loads the page's file as soon as the pointer is over the link. */
const NavigationLink = ({ page }: { page: PageEntry }): VNode => (
  <a
    href={page.path}
    aria-current={place.value.path === page.path ? "page" : pageAt(place.value.path) === page ? "true" : undefined}
    onPointerEnter={() => void page.load().catch(() => {})}
  >
    <Icon name={page.icon} />
    <span>{nameOf(page)}</span>
    {page.path === "/operator" && <AlertDot />}
  </a>
);

function AlertDot(): VNode | null {
  const alerts = operatorNumbers.value?.alerts ?? 0;
  return alerts === 0 ? null : (
    <span
      class="alert-dot"
      role="img"
      aria-label={t("shell.alerts", { alerts })}
      title={t("shell.alerts", { alerts })}
    />
  );
}

const Balance = (): VNode | null => {
  const spendable = numbers.value?.spendable ?? null;
  return spendable === null || !sells.value ? null : (
    <a class="balance-chip" href="/" aria-label={t("shell.to_spend", { spendable })}>
      {count(spendable)}
    </a>
  );
};

/** Blank if nothing is limited or nothing costs anything. */
const toSpend = (spendable: number | null): string =>
  spendable === null || !sells.value ? " " : t("shell.to_spend_short", { spendable });

function SideFoot(): VNode {
  const leave = (): void => void signOut().catch((error: Error) => toast(error.message, "failed"));
  return (
    <div class="side-foot">
      <div class="who">
        <a href="/account" title={account.value?.email}>
          {account.value?.email}
        </a>
        <span class="quiet nowrap">{numbers.value === null ? " " : toSpend(numbers.value.spendable)}</span>
      </div>
      <div class="side-tools">
        <ThemeChoice />
        <IconButton icon="leave" size={17} label={t("common.sign_out")} title={t("common.sign_out")} onClick={leave} />
      </div>
    </div>
  );
}

const DemoNotice = (): VNode => (
  <p class="notice">
    <Icon name="bolt" size={16} />
    <span>{rich("shell.demo", { strong })}</span>
  </p>
);
