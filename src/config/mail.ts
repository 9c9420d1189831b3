// [mail]: the server through which e-mail is sent, and whose name it bears.
import { mailLanguages } from "../core/mail.ts";
import { address, mapped, oneOf, path, text, yesOrNo } from "./kinds.ts";
import { key, required, secret, table } from "./rows.ts";

/** `Name <local@domain>`, or the address alone: nothing that a header could be broken with. */
const mailbox = /^(?:"?([^"<>\p{Cc}]{0,100}?)"?\s*<)?([^\s<>"(),:;@[\]\\\p{Cc}]+@[a-z\d.-]+)>?$/iu;

export type Mailbox = Readonly<{ name: string; address: string }>;

const sender = () =>
  mapped(text('an e-mail address such as "Tollgate <tollgate@example.com>"'), (written, place): Mailbox => {
    const [, name = "", found] = mailbox.exec(written.trim()) ?? [];
    if (found === undefined) place.mustBe('an e-mail address such as "Tollgate <tollgate@example.com>"', written);
    return { name: name.trim(), address: found ?? "" };
  });

const zone = () =>
  mapped(text("a time zone such as Europe/Berlin"), (written, place) => {
    try {
      Temporal.Now.zonedDateTimeISO(written);
    } catch {
      place.mustBe("a time zone such as Europe/Berlin", written);
    }
    return written;
  });

export type MailConfig = Readonly<ReturnType<typeof mailTable.read>>;

export const mailTable = table(
  {
    smtp: required(
      "smtp",
      text("an address such as smtps://mail.example.com:465"),
      "The mail server: `smtps://` speaks TLS from the first byte (port 465), `smtp://` by STARTTLS (port 587).",
    ),
    requiresTls: key("tls", yesOrNo(), {
      about: "`false`: mail also goes to an `smtp://` server that offers no TLS, such as one on this machine.",
      otherwise: true,
    }),
    /** PEM. */
    ca: key("ca", path("file"), {
      about: "Certificates, as PEM, that the mail server's is checked with.",
      otherwise: null,
      shown: "those that this machine trusts",
    }),
    user: key("user", text("a user's name"), {
      about: "The user at the mail server.",
      otherwise: null,
      shown: "it asks for none",
    }),
    password: secret("password", { about: "The user's password." }),
    from: required("from", sender(), "Who sends mail: `Tollgate <tollgate@example.com>`."),
    replyTo: key("reply_to", sender(), {
      about: "Who gets answers.",
      otherwise: null,
      shown: "`from`",
    }),
    templates: key("templates", path("folder"), {
      about: "Templates of your own, `KIND.LANGUAGE.txt` and `.html`; see E-mail.",
      otherwise: null,
      shown: "ours",
    }),
    language: key("language", oneOf(mailLanguages), {
      about: "The language of mail to people of whom none is known.",
      otherwise: "en" as const,
    }),
    url: key("url", address(), {
      about: "The console's address in links.",
      otherwise: null,
      shown: "`base_url`",
    }),
    timeZone: key("time_zone", zone(), {
      about: "Whose months statements have, and in which times are written.",
      otherwise: "UTC",
    }),
  },
  (mail, place, given) => {
    const url = URL.parse(mail.smtp);
    const isSmtp = url !== null && /^smtps?:$/.test(url.protocol) && url.hostname !== "";
    const isPlain =
      url !== null && url.username + url.password + url.search + url.hash === "" && /^\/?$/.test(url.pathname);
    // Never with what it is: someone may have written a password into it.
    if (!isSmtp || !isPlain) place.at("smtp").fault("must be smtps://HOST:PORT or smtp://HOST:PORT, with nothing else");
    const hasPassword = "password" in given || "password_env" in given;
    if (hasPassword !== (mail.user !== null)) {
      place.at(hasPassword ? "user" : "password").fault("is missing: user and password belong together");
    }
    const isSecure = url?.protocol === "smtps:";
    const port = Number(url?.port || (isSecure ? 465 : 587));
    const host = (url?.hostname ?? "").replace(/^\[|\]$/g, "");
    return { ...mail, host, port, isSecure };
  },
);
