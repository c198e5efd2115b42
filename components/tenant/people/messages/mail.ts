import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import nodemailer from 'nodemailer';
import { type Mail, type MessageTransport, UndeliverableError } from './message.ts';

interface MailOptions {
  /** `smtp://user:password@host:587` or `smtps://…`; nothing of it is logged. */
  readonly url: string;
  /** Address of the sender, with or without a name. */
  readonly from: string;
  /** For each phase of a connection; a mail as a whole has three times as long. */
  readonly timeoutMs?: number;
}

/**
 * Sends mails by SMTP (RFC 5321), with STARTTLS where the server offers it; a server that is not on this host must offer
 * it when the address carries a password.
 */
export function createSmtp({ url, from, timeoutMs = 15_000 }: MailOptions): MessageTransport<Mail> {
  const { username, hostname } = new URL(url);
  const transport = nodemailer.createTransport({
    url,
    requireTLS: username !== '' && !url.startsWith('smtps:') && !isLocal(hostname),
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    dnsTimeout: timeoutMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  return {
    async send(id, mail) {
      try {
        await within(3 * timeoutMs, transport.sendMail(composed(id, mail, from)));
      } catch (error) {
        if (isRefusedForGood(error)) throw new UndeliverableError('refused', { cause: error });
        throw new Error(faultOf(error), { cause: error });
      }
    },
  };
}

/** Writes each mail as a file `ID.eml` (RFC 5322), for local mode and tests. */
export function createMailFolder(directory: string, from: string): MessageTransport<Mail> {
  const transport = nodemailer.createTransport({ streamTransport: true, buffer: true, newline: 'unix' });
  return {
    async send(id, mail) {
      const { message } = await transport.sendMail(composed(id, mail, from));
      if (!Buffer.isBuffer(message)) throw new TypeError('the mail is no buffer');
      await writeFile(join(directory, `${id}.eml`), message, { mode: 0o600 });
    },
  };
}

function composed(id: string, { to, subject, text }: Mail, from: string) {
  return {
    from,
    // An object, because a text would be parsed as a list of addresses.
    to: { name: '', address: to },
    subject,
    text,
    messageId: `<${id}@${domainOf(from)}>`,
    headers: { 'Auto-Submitted': 'auto-generated' },
  };
}

function domainOf(from: string): string {
  return /@([A-Za-z0-9.-]+)>?\s*$/.exec(from)?.[1] ?? 'localhost';
}

function isLocal(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '127.0.0.1' || hostname === '[::1]';
}

/** A server may keep a connection busy byte by byte, which no limit of a phase ends. */
async function within<Result>(deadlineMs: number, work: Promise<Result>): Promise<Result> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => reject(Object.assign(new Error('timeout'), { code: 'ETIMEDOUT' })),
    deadlineMs,
  );
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** What went wrong, without the texts of the server: they may quote the receiver's address, which logs do not hold. */
function faultOf(error: unknown): string {
  const { code, responseCode, command } = error as {
    code?: unknown;
    responseCode?: unknown;
    command?: unknown;
  };
  const facts = [code, responseCode, command].filter((fact) => fact !== undefined);
  return facts.length === 0 ? 'the mail could not be sent' : `the mail server: ${facts.join(' ')}`;
}

/** A permanent answer to the receiver's address (RFC 5321, 4.2.1); refusals of the sender are mended by configuration. */
function isRefusedForGood(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code, responseCode } = error as { code?: unknown; responseCode?: unknown };
  return (
    code === 'EENVELOPE' && typeof responseCode === 'number' && responseCode >= 550 && responseCode <= 553
  );
}
