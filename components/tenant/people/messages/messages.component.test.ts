import { createHmac } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SMTPServer } from 'smtp-server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startReplica, startTestTenant, type TestTenant } from '../../tenant.fixture.ts';
import { createProtection } from '../../tokens/keys/protection.ts';
import { createMailFolder, createSmtp } from './mail.ts';
import type { MessageTransports } from './message.ts';
import { createMessageQueue, type MessageQueue } from './queue.ts';
import { createMessageSender, type MessageSender, type Sent } from './sender.ts';
import { createSmsWebhook } from './texts.ts';

const protection = createProtection(Buffer.alloc(32, 9));
const mail = {
  channel: 'mail',
  to: 'ada@example.org',
  subject: 'Verify',
  text: 'Open #token=abc\n',
} as const;
const dayMs = 86_400_000;

describe('mails and text messages', () => {
  let tenant: TestTenant;
  let other: TestTenant;
  let queue: MessageQueue;

  beforeAll(async () => {
    tenant = await startTestTenant('tenant_messages');
    other = await startReplica(tenant.files);
    queue = createMessageQueue(protection, true);
  });
  afterAll(async () => {
    await other.db.close();
    await tenant.stop();
  });

  const add = (message: Parameters<MessageQueue['add']>[1] = mail) =>
    tenant.db.transact((tx) => queue.add(tx, message, tenant.clock.nowMs()));
  const waiting = async () => (await tenant.db.read.selectFrom('messages').select('id').execute()).length;
  const run = (sender: MessageSender) => sender.run(new AbortController().signal);

  function senderOf(transports: MessageTransports, on = tenant) {
    const outcomes: Sent[] = [];
    const sender = createMessageSender({
      db: on.db,
      clock: tenant.clock,
      log: tenant.runtime.log,
      protection,
      transports,
      count: (_channel, outcome) => outcomes.push(outcome),
    });
    return { sender, outcomes };
  }

  it('a message is sealed at rest, sent once by two replicas, and deleted', async () => {
    const sent: string[] = [];
    const transport = { mail: { send: async (id: string) => void sent.push(id) } };
    for (let count = 0; count < 20; count++) await add();
    const rows = await tenant.db.read.selectFrom('messages').selectAll().execute();
    expect(rows.some(({ sealed }) => sealed.includes('ada@example.org'))).toBe(false);
    await Promise.all([run(senderOf(transport).sender), run(senderOf(transport, other).sender)]);
    expect([sent.length, new Set(sent).size, await waiting()]).toEqual([20, 20, 0]);
  });

  it('a message whose cause is rolled back does not exist', async () => {
    const failing = tenant.db.transact(async (tx) => {
      await queue.add(tx, mail, tenant.clock.nowMs());
      throw new Error('the cause failed');
    });
    await expect(failing).rejects.toThrow();
    expect(await waiting()).toBe(0);
  });

  it('without a transport it waits, health is degraded, and it is dropped after a day', async () => {
    const { sender, outcomes } = senderOf({});
    expect(() => sender.assertMail()).toThrow('no transport for mails is configured');
    await add();
    await run(sender);
    await run(sender);
    expect([outcomes, await waiting()]).toEqual([['failed'], 1]);
    await tenant.clock.advance(dayMs + 1);
    await run(sender);
    expect([outcomes, await waiting()]).toEqual([['failed', 'late'], 0]);
  });

  it('a failure is tried again later and later with the same id; success mends the health', async () => {
    const ids: string[] = [];
    let fails = 3;
    const { sender } = senderOf({
      mail: {
        send: async (id) => {
          ids.push(id);
          if (fails-- > 0) throw new Error('421 try later');
        },
      },
    });
    await add();
    await run(sender);
    expect(() => sender.assertMail()).toThrow('421 try later');
    for (const waitMs of [1_000, 2_000, 4_000]) {
      await tenant.clock.advance(waitMs - 1);
      await run(sender);
      await tenant.clock.advance(1);
      await run(sender);
    }
    expect([ids.length, new Set(ids).size, await waiting()]).toEqual([4, 1, 0]);
    expect(() => sender.assertMail()).not.toThrow();
  });

  it('a folder gets mails that a reader of RFC 5322 understands, and no address of the text becomes a header', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'chy-mail-'));
    const { sender } = senderOf({ mail: createMailFolder(folder, 'Chancery <no-reply@example.org>') });
    await add({ ...mail, to: 'ada@example.org', subject: 'Grüße\r\nBcc: eve@example.org' });
    await run(sender);
    const [file = ''] = await readdir(folder);
    const text = await readFile(join(folder, file), 'utf8');
    const head = text.split('\n\n', 1)[0] ?? '';
    expect(head).toMatch(/^To: ada@example\.org$/m);
    expect(head).toMatch(new RegExp(`^Message-ID: <${file.replace('.eml', '')}@example\\.org>$`, 'm'));
    expect(head).not.toMatch(/^Bcc:/im);
    await rm(folder, { recursive: true });
  });

  describe('SMTP', () => {
    const received: string[] = [];
    let server: SMTPServer;
    let refuse: { readonly code: number; readonly text: string } | undefined;

    beforeAll(async () => {
      server = new SMTPServer({
        authOptional: true,
        disabledCommands: ['STARTTLS'],
        onRcptTo: (_address, _session, done) => {
          done(refuse && Object.assign(new Error(refuse.text), { responseCode: refuse.code }));
        },
        onData: (stream, _session, done) => {
          const chunks: Buffer[] = [];
          stream.on('data', (chunk: Buffer) => chunks.push(chunk));
          stream.on('end', () => {
            received.push(Buffer.concat(chunks).toString());
            done();
          });
        },
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    });
    afterAll(() => new Promise<void>((resolve) => server.close(() => resolve())));

    const smtp = () => {
      const { port } = server.server.address() as AddressInfo;
      return { mail: createSmtp({ url: `smtp://127.0.0.1:${port}`, from: 'no-reply@example.org' }) };
    };

    it('delivers', async () => {
      const { sender, outcomes } = senderOf(smtp());
      await add();
      await run(sender);
      expect(outcomes).toEqual(['sent']);
      expect(received.at(-1)).toContain('Open #token=abc');
    });

    it('a temporary refusal waits, a receiver that does not exist is dropped', async () => {
      const { sender, outcomes } = senderOf(smtp());
      refuse = { code: 451, text: 'later' };
      await add();
      await run(sender);
      refuse = { code: 550, text: 'no such user' };
      await tenant.clock.advance(1_000);
      await run(sender);
      refuse = undefined;
      expect([outcomes, await waiting()]).toEqual([['failed', 'undeliverable'], 0]);
    });

    it('a password is sent over TLS alone, unless the server is on this host', async () => {
      const { port } = server.server.address() as AddressInfo;
      // An address that is not the loopback by its spelling, and still arrives there.
      const url = `smtp://user:word@[::ffff:127.0.0.1]:${port}`;
      const transport = createSmtp({ url, from: 'no-reply@example.org' });
      await expect(transport.send('id', mail)).rejects.toThrow(/ETLS.*STARTTLS/);
    });
  });

  describe('a webhook for text messages', () => {
    let server: Server;
    let status = 202;
    let last: { body: string; signature: string } = { body: '', signature: '' };
    const secret = 'a shared secret of the webhook';

    beforeAll(async () => {
      server = createServer((request, response) => {
        const chunks: Buffer[] = [];
        request.on('data', (chunk: Buffer) => chunks.push(chunk));
        request.on('end', () => {
          last = {
            body: Buffer.concat(chunks).toString(),
            signature: String(request.headers['x-chancery-signature']),
          };
          response.writeHead(status, { location: '/elsewhere' }).end();
        });
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    });
    afterAll(() => new Promise<void>((resolve) => server.close(() => resolve())));

    it('gets a signed request; 422 drops the text, everything else keeps it', async () => {
      const { port } = server.address() as AddressInfo;
      const url = `http://127.0.0.1:${port}/send`;
      const { sender, outcomes } = senderOf({
        sms: createSmsWebhook({ url, secret }, () => tenant.clock.nowMs()),
      });
      await add({ channel: 'sms', to: '+4917012345678', text: 'Code 123456' });
      for (const next of [500, 302, 202]) {
        status = next;
        await tenant.clock.advance(60_000);
        await run(sender);
      }
      const [, seconds, mac] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(last.signature) ?? [];
      expect(mac).toBe(createHmac('sha256', secret).update(`${seconds}.${last.body}`).digest('hex'));
      expect(JSON.parse(last.body)).toMatchObject({ to: '+4917012345678', text: 'Code 123456' });
      status = 422;
      await add({ channel: 'sms', to: '+4917012345678', text: 'Code 123456' });
      await run(sender);
      expect([outcomes, await waiting()]).toEqual([['failed', 'failed', 'sent', 'undeliverable'], 0]);
    });
  });
});
