import type { Message } from '../messages/message.ts';

/** What a mail about an address tells. */
interface Notice {
  readonly to: string;
  readonly baseUrl: string;
  readonly organizationName: string;
}

interface Verification extends Notice {
  readonly token: string;
  /** Of the link by which the owner of the address deletes an account that another person made. */
  readonly disownToken: string | undefined;
  readonly at: Date;
  readonly ipAddress: string | undefined;
}

const signature = '\nWe never ask for your password or for a code.\n';

/** Links lead to a page and carry their token in the fragment, so that neither servers nor mail scanners use it. */
function linkTo(baseUrl: string, page: string, fragment: Readonly<Record<string, string>>): string {
  return `${baseUrl}/auth/${page}#${new URLSearchParams(fragment)}`;
}

export function verificationMail(mail: Verification): Message {
  const { baseUrl, token, disownToken, at, ipAddress } = mail;
  const from = ipAddress === undefined ? '' : `, from the network address ${ipAddress}`;
  const disown =
    disownToken === undefined
      ? []
      : [
          '',
          'This was not you? Then delete the account:',
          linkTo(baseUrl, 'verify-email', { disown: disownToken }),
        ];
  const text = [
    `This address was entered at ${mail.organizationName} on ${at.toUTCString()}${from}.`,
    '',
    'If it is yours, confirm it within 24 hours:',
    linkTo(baseUrl, 'verify-email', { token }),
    ...disown,
    signature,
  ].join('\n');
  return { channel: 'mail', to: mail.to, subject: 'Confirm your e-mail address', text };
}

/** For the owner of an address that has an account, when it is registered or entered for another account. */
export function knownAddressMail(mail: Notice): Message {
  const text = [
    `This address was entered at ${mail.organizationName}, perhaps by you. It has an account already; nothing was changed.`,
    '',
    `Sign in: ${mail.baseUrl}/auth/login`,
    'If you do not know the password, that page sends you a link for a new one.',
    signature,
  ].join('\n');
  return { channel: 'mail', to: mail.to, subject: 'You already have an account', text };
}

/** For the present address of an account that is to get another one. */
export function addressChangeMail(to: string, done: boolean): Message {
  const what = done
    ? 'Your account has another e-mail address from now on, and this one no longer signs in.'
    : 'Another e-mail address was entered for your account. It holds once it is confirmed.';
  const text = `${what}\n\nIf this was not you, ask your administrator at once.\n${signature}`;
  return { channel: 'mail', to, subject: 'The e-mail address of your account', text };
}
