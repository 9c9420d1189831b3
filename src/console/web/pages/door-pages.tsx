// The pages of links and of the identity provider: the way back from it, an invitation, a new password.
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Entered, LinkShown } from "../../api/sign-in.ts";
import { count, fullMoment, worth } from "../format.ts";
import { EmailField, PasswordField } from "../parts/account-fields.tsx";
import { Door } from "../parts/door.tsx";
import { FormError } from "../parts/field.tsx";
import { ProviderButton } from "../parts/provider-button.tsx";
import { FirstKey } from "../parts/secret.tsx";
import { Loading } from "../parts/states.tsx";
import { pageAt } from "../pages.ts";
import { messageOf, post } from "../request.ts";
import { useAction, useResource } from "../resource.ts";
import { navigate, place } from "../route.ts";
import { account, become, loadSession, session } from "../session.ts";
import { Button } from "../parts/button.tsx";

export const DoorPage = (): VNode => (place.value.path === "/sign-in/callback" ? <Callback /> : <LinkPage />);

/** A page of this console, never another site. */
const safe = (next: string): string => (pageAt(next) === undefined ? "/" : next);

/** Continues to the next page, or shows the key of a new account first. */
function useEntered(): [Entered | null, (entered: Entered) => void] {
  const [shown, setShown] = useState<Entered | null>(null);
  const enter = (entered: Entered): void => {
    become(entered.session);
    if (entered.api_key === null) navigate(safe(entered.next), { replace: true });
    else setShown(entered);
  };
  return [shown, enter];
}

const Welcome = ({ session: { account: made }, api_key, next }: Entered): VNode => (
  <Door title="Your API key" heading="Welcome to Tollgate">
    <FirstKey email={made?.email ?? ""} apiKey={api_key ?? ""} next={safe(next)} />
  </Door>
);

function Callback(): VNode {
  const [entered, enter] = useEntered();
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    const { search } = location;
    history.replaceState(null, "", "/sign-in/callback"); // its code works once, and must not stay in the history
    post("/provider/finish", { query: search }).then(enter, (error: unknown) => setProblem(messageOf(error)));
  }, []);
  if (entered !== null) return <Welcome {...entered} />;
  const back = account.value === null ? "/sign-in" : "/account";
  const failed = back === "/sign-in" ? "You are not signed in" : "That did not work";
  return (
    <Door title="Sign in" heading={problem === null ? "Signing in" : failed}>
      {problem === null ? (
        <Loading lines={2} />
      ) : (
        <div class="card stack">
          <FormError message={problem} />
          <a class="button primary block" href={back}>
            {back === "/sign-in" ? "Back to sign-in" : "Back to your account"}
          </a>
        </div>
      )}
    </Door>
  );
}

function LinkPage(): VNode {
  const [token] = useState(location.hash.slice(1));
  const [entered, enter] = useEntered();
  const link = useResource(() => post("/link", { token }), token);
  if (entered !== null) return <Welcome {...entered} />;
  const { value, error } = link;
  if (value === null) {
    const heading = error === null ? "One moment" : "This link does not work";
    return (
      <Door title="Link" heading={heading}>
        {error === null ? (
          <Loading lines={8} />
        ) : (
          <div class="card stack">
            <FormError message={error} />
            <a class="button block" href="/sign-in">
              Go to sign-in
            </a>
          </div>
        )}
      </Door>
    );
  }
  if (value.team !== null && account.value !== null) return <JoinTeam team={value.team} token={token} />;
  const isNew = value.kind === "invitation";
  const gift = value.credit > 0 ? ` and ${count(value.credit)} balance tokens, worth ${worth(value.credit)}` : "";
  const into = value.team === null ? `the plan ${value.plan}${gift}` : `the team ${value.team}`;
  const lead = isNew ? `You are invited: ${into}` : `The account ${value.email}`;
  return (
    <Door
      title={isNew ? "Invitation" : "New password"}
      heading={isNew ? "Join Tollgate" : session.value?.passwords === false ? "Sign in to Tollgate" : "Set a password"}
      lead={lead}
    >
      <div class="card stack">
        {session.value?.passwords === true && <LinkForm token={token} link={value} onEntered={enter} />}
        {session.value?.passwords === true && session.value.provider !== null && <p class="or">or</p>}
        {session.value?.provider != null && <ProviderButton body={{ token }} primary={!session.value.passwords} />}
      </div>
      {value.team !== null && (
        <p class="door-other">
          You have an account here? <a href="/sign-in">Sign in</a>, then open the link again.
        </p>
      )}
      <p class="door-other">The link works once, until {fullMoment(value.expires_at)}</p>
    </Door>
  );
}

function JoinTeam({ team, token }: { team: string; token: string }): VNode {
  const action = useAction();
  const join = (): void =>
    void action.run(async () => {
      await post("/teams/join", { token });
      await loadSession();
      navigate("/team", { replace: true });
    });
  return (
    <Door title="Invitation" heading={`Join ${team}`} lead={`With your account ${account.value?.email}`}>
      <div class="card stack">
        <FormError message={action.error} />
        <Button caption="Join the team" class="button primary block" busy={action.busy} onClick={join} />
      </div>
    </Door>
  );
}

type LinkFormProps = Readonly<{ token: string; link: LinkShown; onEntered: (entered: Entered) => void }>;

function LinkForm({ token, link, onEntered }: LinkFormProps): VNode {
  const [email, setEmail] = useState(link.email ?? "");
  const [password, setPassword] = useState("");
  const action = useAction();
  const isNew = link.kind === "invitation";
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    void action.run(async () => {
      const chosen = isNew && link.email === null ? { email } : {};
      onEntered(await post("/link/use", { token, password, ...chosen }));
    });
  };
  return (
    <form class="stack" onSubmit={submit}>
      <EmailField value={email} onValue={setEmail} isOwn isFixed={link.email !== null} />
      <PasswordField label={isNew ? "Password" : "New password"} value={password} onValue={setPassword} isNew />
      <FormError message={action.error} />
      <Button
        caption={isNew ? "Create account" : "Set password"}
        type="submit"
        class="button primary block"
        busy={action.busy}
      />
    </form>
  );
}
