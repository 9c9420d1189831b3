// The pages of mail: a forgotten password, and where links of mails lead that are no invitation and set no password.
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { EmailField } from "../parts/account-fields.tsx";
import { Button } from "../parts/button.tsx";
import { Door } from "../parts/door.tsx";
import { FormError } from "../parts/field.tsx";
import { post } from "../request.ts";
import { useAction } from "../resource.ts";
import { place } from "../route.ts";
import { account } from "../session.ts";
import { t } from "../texts.ts";

export const MailPage = (): VNode => {
  const { path } = place.value;
  if (path === "/forgotten") return <ForgottenPage />;
  return path === "/unsubscribe" ? <UnsubscribePage /> : <ConfirmPage />;
};

/** What is said is the same whether there is such an account or not. */
function ForgottenPage(): VNode {
  const [email, setEmail] = useState("");
  const [asked, setAsked] = useState(false);
  const action = useAction();
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    void action.run(async () => {
      await post("/forgotten", { email });
      setAsked(true);
    });
  };
  return (
    <Door title={t("mail.forgotten")} heading={t("mail.forgotten")}>
      {asked ? (
        <p class="card" role="status">
          {t("mail.forgotten_done", { email })}
        </p>
      ) : (
        <form class="card stack" onSubmit={submit}>
          <p class="quiet small-text">{t("mail.forgotten_about")}</p>
          <EmailField value={email} onValue={setEmail} isOwn hasFocus />
          <FormError message={action.error} />
          <Button caption={t("mail.forgotten_send")} type="submit" class="button primary block" busy={action.busy} />
        </form>
      )}
      <p class="door-other">
        <a href="/sign-in">{t("mail.to_sign_in")}</a>
      </p>
    </Door>
  );
}

/** A button, since programs open links to look at them. */
function UnsubscribePage(): VNode {
  const [token] = useState(() => decodeURIComponent(location.hash.slice(1)));
  const [done, setDone] = useState(false);
  const action = useAction();
  const end = (): void =>
    void action.run(async () => {
      await post("/mail/unsubscribe", { token });
      setDone(true);
    });
  return (
    <Door title={t("mail.unsubscribe")} heading={t("mail.unsubscribe")}>
      <div class="card stack">
        <p role="status">{t(done ? "mail.unsubscribed" : "mail.unsubscribe_about")}</p>
        <FormError message={action.error} />
        {!done && (
          <Button caption={t("mail.unsubscribe")} class="button primary block" busy={action.busy} onClick={end} />
        )}
      </div>
    </Door>
  );
}

function ConfirmPage(): VNode {
  const [token] = useState(location.hash.slice(1));
  const [address, setAddress] = useState<string | null>(null);
  const action = useAction();
  const signedIn = account.value !== null;
  useEffect(() => {
    if (signedIn) void action.run(async () => setAddress((await post("/mail/confirm", { token })).address));
  }, [signedIn]);
  const said = address === null ? t("mail.confirm_sign_in") : t("mail.confirmed", { address });
  return (
    <Door title={t("mail.confirm")} heading={t("mail.confirm")}>
      <div class="card stack">
        {action.error === null ? (
          (address !== null || !signedIn) && <p role="status">{said}</p>
        ) : (
          <FormError message={action.error} />
        )}
        <a class="button block" href={signedIn ? "/account" : "/sign-in"}>
          {t(signedIn ? "mail.to_account" : "mail.to_sign_in")}
        </a>
      </div>
    </Door>
  );
}
