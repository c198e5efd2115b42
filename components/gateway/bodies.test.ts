import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { waitFor } from '#kit/testing/wait.ts';
import { answerAsRegister, megabyte } from './testing/register-answers.ts';
import {
  call,
  createTestWorld,
  sendRaw,
  type TestGateway,
  type TestService,
  type TestWorld,
} from './testing/world.ts';

describe('request bodies', () => {
  let world: TestWorld;
  let register: TestService;
  let gateway: TestGateway;

  beforeAll(async () => {
    world = await createTestWorld();
    register = await world.startService('register', answerAsRegister([]));
    gateway = await world.startGateway({
      register: register.address,
      wallet: '127.0.0.1:9',
      tenant: '127.0.0.1:9',
    });
  });

  afterAll(() => world.stop());

  it.each([0, 1, 65_536, 65_537, 10 * megabyte])('forwards a body of %d bytes', async (sizeBytes) => {
    const answer = await call(gateway.port, '/api/registers/echo', {
      method: 'POST',
      body: Buffer.alloc(sizeBytes, 'x'),
    });
    expect(answer).toMatchObject({ status: 201 });
    expect(answer.json()['bytes']).toBe(sizeBytes);
  });

  it('forwards a chunked body', async () => {
    const text = await sendRaw(
      gateway.port,
      'POST /api/registers/echo HTTP/1.1\r\nhost: h\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n',
    );
    expect(text).toMatch(/^HTTP\/1\.1 201 /);
    expect(text).toContain('"bytes":5');
  });

  it('refuses 10 MB + 1 byte with 413 before the service receives anything', async () => {
    const before = register.seen.length;
    const answer = await sendRaw(
      gateway.port,
      `POST /api/registers/echo HTTP/1.1\r\nhost: h\r\ncontent-length: ${10 * megabyte + 1}\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 413 /);
    expect(answer).toContain('"code":"PAYLOAD_TOO_LARGE"');
    expect(answer.toLowerCase()).toContain('connection: close');
    expect(register.seen.length).toBe(before);
  });

  it('forwards a form with a trust list of 10 MiB, to that path alone', async () => {
    const sizes = async (path: string, sizeBytes: number) => {
      const head = `POST ${path} HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-length: ${sizeBytes}\r\n\r\n`;
      const answer = await sendRaw(gateway.port, `${head}${'x'.repeat(sizeBytes)}`);
      return answer.slice(9, 12);
    };
    // The tenant service cannot be reached here: 503 is the answer of a request that was forwarded.
    expect(await sizes('/api/v1/trust/trustlists', 10 * megabyte + 512)).toBe('503');
    expect(await sizes('/api/v1/trust/trustlists', 11 * megabyte + 1)).toBe('413');
    expect(await sizes('/api/v1/trust/tenants', 10 * megabyte + 512)).toBe('413');
  });

  it('refuses 10 MB + 1 byte with 413 when the length was not announced', async () => {
    const socket = connect(gateway.port, '127.0.0.1');
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
    });
    socket.on('error', () => undefined);
    socket.write('POST /api/registers/echo HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n');
    const chunk = Buffer.alloc(megabyte, 'x');
    for (let sent = 0; sent < 11 && !socket.destroyed; sent++) {
      socket.write(`${megabyte.toString(16)}\r\n`);
      if (!socket.write(Buffer.concat([chunk, Buffer.from('\r\n')]))) {
        await Promise.race([once(socket, 'drain'), once(socket, 'close')]).catch(() => undefined);
      }
    }
    await waitFor(() => text.includes('\r\n\r\n'));
    expect(text).toMatch(/^HTTP\/1\.1 413 /);
    socket.destroy();
  });

  it('delivers the refusal to a client that writes its whole body first', async () => {
    const url = `http://127.0.0.1:${gateway.port}`;
    const body = Buffer.alloc(10 * megabyte + 1, 'x');
    const refused = await fetch(`${url}/api/registers/echo`, { method: 'POST', body });
    expect(refused.status).toBe(413);
    expect(await refused.json()).toMatchObject({ code: 'PAYLOAD_TOO_LARGE' });
    const unknown = await fetch(`${url}/api/unknown`, { method: 'POST', body });
    expect(unknown.status).toBe(404);
    await unknown.text();
    const early = await fetch(`${url}/api/registers/early`, { method: 'POST', body: body.subarray(1) });
    expect(early.status).toBe(409);
    await early.text();
    const down = await fetch(`${url}/api/wallets`, { method: 'POST', body: body.subarray(1) });
    expect(down.status).toBe(503);
    await down.text();
  });

  it('forwards an early refusal of the service while the body is still arriving', async () => {
    const text = await sendRaw(
      gateway.port,
      `POST /api/registers/early HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-length: ${megabyte}\r\n\r\n${'x'.repeat(megabyte)}`,
    );
    expect(text).toMatch(/^HTTP\/1\.1 409 /);
  });

  it('answers 100-continue only for bodies that it accepts', async () => {
    const head = 'host: h\r\nconnection: close\r\nexpect: 100-continue\r\n';
    const refused = await sendRaw(
      gateway.port,
      `POST /api/registers/echo HTTP/1.1\r\n${head}content-length: ${11 * megabyte}\r\n\r\n`,
    );
    expect(refused).toMatch(/^HTTP\/1\.1 413 /);
    const taken = await sendRaw(
      gateway.port,
      `POST /api/registers/echo HTTP/1.1\r\n${head}content-length: 2\r\n\r\nok`,
    );
    expect(taken).toMatch(/^HTTP\/1\.1 100 Continue/);
    expect(taken).toContain('HTTP/1.1 201 ');
  });
});
