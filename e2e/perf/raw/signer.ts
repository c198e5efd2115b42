import { createPrivateKey, createPublicKey, sign } from 'node:crypto';
import pg from 'pg';
import { serveFrames } from './wire.ts';

/**
 * The least the signing component does for one vote: an Ed25519 signature and one guard row, committed before the
 * signature leaves. Settings: {key, cert, ca, databaseUrl, schema, signingKey}. Answers public key and signature.
 */

const settings = JSON.parse(process.argv[2] ?? '{}');
const privateKey = createPrivateKey(settings.signingKey);
const { x } = createPublicKey(privateKey).export({ format: 'jwk' });
const publicKey = Buffer.from(x ?? '', 'base64url');
const client = new pg.Client({ connectionString: settings.databaseUrl });
// the database may go first when the benchmark ends
client.on('error', () => process.exit(0));
await client.connect();
await client.query(`create schema ${settings.schema}`);
await client.query(`set search_path = ${settings.schema}`);
await client.query(
  'create table raw_guard (id int primary key, position bigint, digest bytea, signature bytea)',
);

const guard = `insert into raw_guard as g values (1, $1, $2, $3)
  on conflict (id) do update set position = excluded.position, digest = excluded.digest, signature = excluded.signature
  where excluded.position > g.position returning 1`;
let position = 0;

const port = await serveFrames(settings, async (digest) => {
  const signature = sign(null, digest, privateKey);
  position += 1;
  await client.query({ name: 'guard', text: guard, values: [position, digest, signature] });
  return Buffer.concat([publicKey, signature]);
});
process.send?.(String(port));
