// Keys and links that are shown only once, with a button that copies them.
import type { ComponentChildren, VNode } from "preact";
import { session } from "../session.ts";
import { Button } from "./button.tsx";
import { CopyButton } from "./copy-button.tsx";
import { Dialog } from "./dialog.tsx";
import { rich, t } from "../texts.ts";
import { strong } from "./inline.tsx";

type SecretProps = Readonly<{ text: string; label: string; caption?: string }>;

export const Secret = ({ text, label, caption }: SecretProps): VNode => (
  <div class="secret">
    <code>{text}</code>
    <CopyButton text={text} label={label} caption={caption} />
  </div>
);

/** `path` is below this server's address. */
export const SecretLink = ({ path }: { path: string }): VNode => (
  <Secret text={(session.value?.base_url ?? location.origin) + path} label={t("secret.copy_link")} />
);

type FreshInvitationProps = Readonly<{
  path: string;
  /** Who gets it by e-mail, too. */
  mailedTo: string | null;
  children: ComponentChildren;
  onClose: () => void;
}>;

/** `children`: what it is for. */
export const FreshInvitation = ({ path, mailedTo, children, onClose }: FreshInvitationProps): VNode => (
  <Dialog title={t("secret.invitation")} onClose={onClose}>
    <p>
      {children} {rich("secret.once", { strong })}
    </p>
    {mailedTo !== null && <p>{t("mail.sent_to", { address: mailedTo })}</p>}
    <SecretLink path={path} />
    <footer>
      <Button caption={t("common.done")} class="button primary" onClick={onClose} />
    </footer>
  </Dialog>
);

type FreshKeyProps = Readonly<{ title: string; apiKey: string; label: string }>;

export const FreshKey = ({ title, apiKey, label }: FreshKeyProps): VNode => (
  <div class="fresh-key" role="status">
    <p>
      <strong>{title}</strong> {t("secret.copy_now")}
    </p>
    <Secret text={apiKey} label={label} caption={t("common.copy")} />
  </div>
);

type FirstKeyProps = Readonly<{ email: string; apiKey: string; next?: string }>;

/** The key of an account that was just created. */
export const FirstKey = ({ email, apiKey, next = "/" }: FirstKeyProps): VNode => (
  <div class="card stack">
    <p>{rich("secret.first_key", { email: <strong>{email}</strong>, strong })}</p>
    <Secret text={apiKey} label={t("secret.copy_key")} />
    <a class="button primary block" href={next}>
      {t("secret.saved")}
    </a>
  </div>
);
