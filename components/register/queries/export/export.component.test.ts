import { request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { canonicalBytes } from '#core/encoding/jcs.ts';
import { AppError } from '#core/errors/errors.ts';
import { memberDid } from '#core/ledger/did.ts';
import { parseExportLine } from '#core/ledger/export/lines.ts';
import { ExportVerifier } from '#core/ledger/export/verify-export.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { testKey } from '../../testing/keys.ts';
import { startTestRegister, type TestRegister } from '../../testing/register.ts';
import { createExports } from './exports.ts';

const owner = testKey(1);

describe('export', () => {
  let register: TestRegister;
  let registerId: string;

  const path = () => `/api/registers/${registerId}/export`;
  const read = (token = 'admin') => register.call('GET', path(), { token });

  async function submit(payload: unknown): Promise<void> {
    const body = { senderAddress: owner.walletAddress, payload: encodeBase64(canonicalBytes(payload)) };
    const at = `/api/registers/${registerId}/transactions`;
    const { status, text: answer } = await register.call('POST', at, { token: 'admin', body });
    if (status !== 202) throw new Error(answer);
  }

  function verify(file: string) {
    const verification = new ExportVerifier(register.verifier);
    for (const line of file.slice(0, -1).split('\n')) verification.take(Buffer.from(line));
    return verification.finish();
  }

  beforeAll(async () => {
    register = await startTestRegister('export', { members: 4 });
    registerId = await register.createRegister();
    for (let docket = 1; docket <= 12; docket += 1) {
      for (let count = 0; count < (docket === 5 ? 60 : docket); count += 1) {
        await submit({ docket, count, text: 'x'.repeat(docket === 5 ? 100_000 : 10) });
      }
      await register.seal(registerId);
    }
  });
  afterAll(() => register.stop());

  it('exports the whole register in a verifiable form', async () => {
    const answer = await read();
    expect(answer.status).toBe(200);
    expect(answer.headers).toMatchObject({
      'content-type': 'application/x-ndjson; charset=utf-8',
      'content-disposition': `attachment; filename="register-${registerId}.jsonl"`,
    });
    const { head } = await register.state(registerId);
    expect(verify(answer.text)).toMatchObject({
      registerId,
      dockets: 13,
      transactions: 134,
      headHash: head?.hash,
      cosigners: ['validator-0', 'validator-1', 'validator-2', 'validator-3'],
    });
  });

  it('contains the bytes that the routes of one transaction serve', async () => {
    const { text: file } = await read();
    const kinds = file
      .slice(0, -1)
      .split('\n')
      .map((line) => parseExportLine(Buffer.from(line)));
    const last = kinds.findLast((line) => line.kind === 'transaction');
    const docket = kinds.findLast((line) => line.kind === 'docket')?.docket.header;
    const at = `/api/registers/${registerId}/transactions/${docket?.transactionIds.at(-1)}`;
    const record = await register.call('GET', `${at}/record`, { token: 'admin' });
    const one = await register.call('GET', at, { token: 'admin' });
    expect(Buffer.from(last?.record ?? []).toString()).toBe(record.text);
    expect(encodeBase64(last?.payload ?? new Uint8Array())).toBe(one.body.payload);
  });

  it('contains the rules of a register with governance changes', async () => {
    const body = {
      policy: { version: 2, governance: { proposalTtlDays: 9 } },
      updatedBy: memberDid(owner.walletAddress),
      transitionMode: 'immediate',
    };
    const at = `/api/registers/${registerId}/policy/update`;
    const sent = await register.call('POST', at, { token: 'admin', body });
    expect(sent.status).toBe(202);
    await register.seal(registerId);
    const summary = verify((await read()).text);
    expect(summary.dockets).toBe(14);
  });

  it('is visible only to callers who may see the register', async () => {
    expect((await read('stranger')).status).toBe(404);
    expect((await register.call('GET', path())).status).toBe(401);
    expect(
      (await register.call('GET', `/api/registers/${'0'.repeat(32)}/export`, { token: 'admin' })).status,
    ).toBe(404);
    expect((await read('system')).status).toBe(404);
    expect((await read('validator')).status).toBe(200);
  });

  it('is refused while the checkpoint cannot be signed', async () => {
    await submit({ more: true });
    await register.seal(registerId);
    const sign = register.wallets.signCheckpoint;
    register.wallets.signCheckpoint = () =>
      Promise.reject(new AppError('unavailable', 'SERVICE_UNAVAILABLE', 'away'));
    const refused = await read();
    register.wallets.signCheckpoint = sign;
    expect(refused.status).toBe(503);
    expect((await read()).status).toBe(200);
  });

  it('ends at the docket of its checkpoint, whatever is sealed while it is read', async () => {
    const found = await register.state(registerId);
    const exports = createExports(register.ledger.deps.export.db);
    const answer = await register.call('GET', `/api/registers/${registerId}/checkpoint`, { token: 'admin' });
    const { registerNo, height: size } = found;
    const stream = exports.open({ registerNo, registerId, size, checkpoint: answer.text }, 'somebody');
    const first = await new Promise<string>((resolve) => {
      stream.once('data', (chunk: Buffer) => {
        stream.pause();
        resolve(chunk.toString());
      });
    });
    await submit({ later: true });
    await register.seal(registerId);
    expect(verify(first + (await text(stream))).dockets).toBe(size);
    expect((await register.state(registerId)).height).toBe(size + 1);
  });

  it('stops when its reader disconnects, and is bounded', async () => {
    const { exports } = register.ledger.deps.export;
    await register.app.listen({ host: '127.0.0.1', port: 0 });
    const { port } = register.app.server.address() as AddressInfo;
    const begin = () =>
      new Promise<{ status: number; leave: () => void }>((resolve, reject) => {
        const call = request({
          host: '127.0.0.1',
          port,
          path: path(),
          headers: { authorization: 'Bearer admin' },
        });
        call.once('error', reject);
        call.once('response', (response) => {
          response.on('error', () => undefined);
          resolve({ status: response.statusCode ?? 0, leave: () => void response.destroy() });
        });
        call.end();
      });
    const [one, two] = [await begin(), await begin()];
    expect([one.status, two.status, exports.running]).toEqual([200, 200, 2]);
    const third = await begin();
    expect(third.status).toBe(429);
    one.leave();
    await waitFor(() => exports.running === 1, { what: 'the end of an export whose reader disconnected' });
    two.leave();
    await waitFor(() => exports.running === 0, { what: 'the end of both exports' });
    expect((await read()).status).toBe(200);
  });

  it('aborts for a reader that takes nothing', async () => {
    const { db } = register.ledger.deps.export;
    const { registerNo, height: size } = await register.state(registerId);
    const exports = createExports(db, { limit: 1, limitPerCaller: 1, stallMs: 50 });
    const stream = exports.open({ registerNo, registerId, size, checkpoint: 'unread' }, 'somebody');
    expect(() => exports.open({ registerNo, registerId, size, checkpoint: 'unread' }, 'another')).toThrow(
      expect.objectContaining({ code: 'EXPORTS_BUSY' }),
    );
    const failed = new Promise<Error>((resolve) => stream.once('error', resolve));
    stream.read(1);
    expect(await failed).toMatchObject({ code: 'TIMEOUT' });
    await waitFor(() => exports.running === 0, { what: 'the end of the stalled export' });
  });

  it('breaks off when rows are missing, instead of ending as if it were complete', async () => {
    const { db } = register.ledger.deps.export;
    const { registerNo, height } = await register.state(registerId);
    const plan = { registerNo, registerId, size: height + 1, checkpoint: 'unread' };
    await expect(text(createExports(db).open(plan, 'somebody'))).rejects.toMatchObject({ kind: 'internal' });
  });

  it('verification fails when any byte of a small export is changed', async () => {
    const small = await register.createRegister('Small');
    const { text: file } = await register.call('GET', `/api/registers/${small}/export`, { token: 'admin' });
    const bytes = Buffer.from(file);
    expect(verify(file).dockets).toBe(1);
    for (let place = 0; place < bytes.length; place += 7) {
      const copy = Buffer.from(bytes);
      copy[place] = (copy[place] ?? 0) ^ 1;
      expect(() => verify(copy.toString()), `byte ${place}`).toThrow();
    }
  });
});
