import { it } from 'vitest';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { canonicalBytes } from '#core/encoding/jcs.ts';
import { formatLedgerTimestamp } from '#core/encoding/timestamp.ts';
import { buildRecord, recordBytes } from '#core/ledger/record.ts';
import { boundTxId, payloadHash, signingDigest, type TransactionEnvelope } from '#core/ledger/transaction.ts';
import { buildDocket } from '../testing/build-docket.ts';
import { testKey } from '../testing/keys.ts';
import { startTestRegister } from '../testing/register.ts';

it('bench', async () => {
  const sender = testKey(1);
  const register = await startTestRegister('bench');
  const registerId = await register.createRegister();
  const make = (n: number) => {
    const payload = { n, text: 'x'.repeat(300) };
    const envelope: TransactionEnvelope = {
      registerId, blueprintId: 'loan', actionId: '0', type: 'Action', payloadHash: payloadHash(payload),
      createdAt: formatLedgerTimestamp(BigInt(Date.now()) * 1000n),
    };
    const txId = boundTxId(envelope, [sender.publicKey]);
    const bytes = canonicalBytes(payload);
    const record = buildRecord({ envelope, txId, payloadSize: bytes.length, senderAddress: sender.walletAddress, bound: true,
      signatures: [{ publicKey: sender.publicKey, signatureValue: encodeBase64(sender.signer.signDigest(signingDigest(txId, envelope.payloadHash))), algorithm: 'ED25519' }] });
    return { record: recordBytes(record), payload: bytes, payloadHashForm: 'jcs' };
  };
  let n = 0;
  for (const size of [1000, 1000, 1000, 1, 1, 1, 1, 10, 100]) {
    const txs = Array.from({ length: size }, () => make(n++));
    const bundle = buildDocket(await register.state(registerId), txs, register.members);
    const st = await register.state(registerId);
    const { readDocket, verifyDocket } = await import('./verify.ts');
    const { createVerifier, nodeEd25519 } = await import('#core/crypto/verify.ts');
    const t0 = performance.now(); const c0 = process.cpuUsage();
    const rd = readDocket(bundle); if (Array.isArray(rd)) throw new Error('x');
    const t1 = performance.now(); const c1 = process.cpuUsage(c0);
    const v = await verifyDocket(rd, st, new Map(), { verifier: createVerifier(nodeEd25519()), verifySignatures: async (c) => c.map(() => true) });
    const t2 = performance.now(); const c2 = process.cpuUsage(c0);
    console.log('read', (t1-t0).toFixed(1), c1.user/1000, 'verify w/o sigs', (t2-t1).toFixed(1), (c2.user-c1.user)/1000, v.length);
    const c3 = process.cpuUsage();
    const t = performance.now();
    const r = await register.ledger.writeDocket(bundle);
    console.log(size, r.outcome, (performance.now() - t).toFixed(2), 'ms', process.cpuUsage(c3).user/1000);
  }
  const times: number[] = [];
  const cc = process.cpuUsage(); let vt = 0;
  for (let k = 0; k < 300; k++) {
    const bundle = buildDocket(await register.state(registerId), [make(n++)], register.members);
    const t = performance.now(); 
    await register.ledger.writeDocket(bundle);
    times.push(performance.now() - t);
  }
  times.sort((a, b) => a - b);
  console.log('single p50', times[150], 'p10', times[30], 'p90', times[270]);
  const c = await register.database.pool.connect();
  const raw: number[] = [];
  await c.query('create table rawt(a int)');
  for (let k = 0; k < 300; k++) { const t = performance.now(); await c.query('begin'); await c.query('insert into rawt values(1)'); await c.query('commit'); raw.push(performance.now() - t); }
  raw.sort((a, b) => a - b); console.log('raw 3 rt', raw[150]);
  c.release();
  await register.stop();
}, 60000);
