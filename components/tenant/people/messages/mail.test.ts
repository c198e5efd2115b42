import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer as createPlainServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import { afterEach, describe, expect, it } from 'vitest';
import { createMailFolder, createSmtp } from './mail.ts';
import { UndeliverableError } from './message.ts';

const mail = { channel: 'mail', to: 'ada@example.org', subject: 'Verify', text: 'Open it.\n' } as const;
const from = 'no-reply@example.org';
const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

/** A mail server; what it received, and who signed in. */
async function startServer(options: SMTPServerOptions) {
  const seen = { passwords: [] as string[], mails: 0 };
  const server = new SMTPServer({
    authOptional: true,
    logger: false,
    onAuth: ({ username, password }, _session, done) => {
      seen.passwords.push(password ?? '');
      if (password === 'right') done(null, { user: username });
      else done(Object.assign(new Error(`no entry for ${username}`), { responseCode: 535 }));
    },
    onData: (stream, _session, done) => {
      stream.resume();
      stream.once('end', () => {
        seen.mails += 1;
        done();
      });
    },
    ...options,
  });
  server.on('error', () => undefined);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  stops.push(() => new Promise<void>((resolve) => server.close(resolve)));
  return { port: (server.server.address() as AddressInfo).port, seen };
}

/** A peer that is no mail server. */
async function startPeer(greet: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>();
  const server: Server = createPlainServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    greet(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  stops.push(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

const sendTo = (port: number, credentials = '', timeoutMs?: number) =>
  createSmtp({
    url: `smtp://${credentials}127.0.0.1:${port}`,
    from,
    ...(timeoutMs !== undefined && { timeoutMs }),
  }).send('id', mail);

/** What is thrown; its text is logged. */
async function faultOf(sending: Promise<void>): Promise<Error> {
  const error = await sending.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof Error) return error;
  throw new Error('the mail was accepted');
}

describe('a mail server', () => {
  it('that takes the password gets the mail', async () => {
    const { port, seen } = await startServer({ disabledCommands: ['STARTTLS'] });
    await sendTo(port, 'app:right@');
    expect(seen).toEqual({ passwords: ['right'], mails: 1 });
  });

  it('that refuses the password leaves the mail waiting: the settings can be mended', async () => {
    const { port, seen } = await startServer({ disabledCommands: ['STARTTLS'] });
    const fault = await faultOf(sendTo(port, 'app:wrong@'));
    expect(fault).not.toBeInstanceOf(UndeliverableError);
    expect(fault.message).toBe('the mail server: EAUTH 535 AUTH PLAIN');
    expect(seen.mails).toBe(0);
  });

  it('with a certificate that is not trusted gets neither the password nor the mail', async () => {
    const { port, seen } = await startServer({});
    const fault = await faultOf(sendTo(port, 'app:right@'));
    expect(fault.message).toMatch(/^the mail server: (?:ESOCKET|ETLS)/);
    expect(seen).toEqual({ passwords: [], mails: 0 });
  });

  it.each([
    [450, false],
    [451, false],
    [452, false],
    [550, true],
    [551, true],
    [553, true],
    [554, false],
  ])('that refuses the receiver with %i refuses for good: %j', async (responseCode, isForGood) => {
    const { port } = await startServer({
      disabledCommands: ['STARTTLS'],
      onRcptTo: (_address, _session, done) => done(Object.assign(new Error('no'), { responseCode })),
    });
    const fault = await faultOf(sendTo(port));
    expect(fault instanceof UndeliverableError).toBe(isForGood);
    // logs hold no address
    expect(fault.message).not.toContain('ada');
  });

  it.each([
    ['is away', () => undefined],
    ['closes at once', (socket: Socket) => void socket.destroy()],
    ['never greets', () => undefined],
    [
      'greets without end',
      (socket: Socket) => {
        const timer = setInterval(() => socket.write('220-wait\r\n'), 20);
        socket.once('close', () => clearInterval(timer));
      },
    ],
    ['is no mail server', (socket: Socket) => void socket.write('HTTP/1.1 400 Bad Request\r\n\r\n')],
  ])('that %s leaves the mail waiting, after a bounded time', async (what, greet) => {
    const port = what === 'is away' ? 9 : await startPeer(greet);
    const fault = await faultOf(sendTo(port, '', 200));
    expect(fault).not.toBeInstanceOf(UndeliverableError);
    expect(fault.message).toMatch(/^the mail server: /);
  });
});

const reader = `
import json, sys
from email import message_from_bytes, policy
mail = message_from_bytes(open(sys.argv[1], 'rb').read(), policy=policy.default)
print(json.dumps({'headers': mail.items(), 'text': mail.get_content(), 'defects': [str(d) for d in mail.defects]}))
`;

it('a mail is understood by another reader of RFC 5322: letters of every script, long lines, no header of its text', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'chy-mail-'));
  const text = `Grüße, 鍵 und ${'long '.repeat(400)}\n.\nhttps://city.example/auth/verify-email#token=${'a'.repeat(43)}\n`;
  const subject = 'Bestätige deine Adresse 鍵\r\nBcc: eve@example.org';
  await createMailFolder(folder, 'Stadt Köln <no-reply@city.example>').send('0197', {
    ...mail,
    subject,
    text,
  });
  const [file = ''] = readdirSync(folder);
  const read = JSON.parse(execFileSync('python3', ['-c', reader, join(folder, file)], { encoding: 'utf8' }));
  rmSync(folder, { recursive: true });
  const headers = Object.fromEntries(read.headers);
  expect(read).toMatchObject({ text, defects: [] });
  expect(headers).toMatchObject({
    From: 'Stadt Köln <no-reply@city.example>',
    To: 'ada@example.org',
    'Message-ID': '<0197@city.example>',
    'Auto-Submitted': 'auto-generated',
  });
  expect(headers['Subject']).toContain('Bestätige deine Adresse 鍵');
  expect(headers).not.toHaveProperty('Bcc');
});
