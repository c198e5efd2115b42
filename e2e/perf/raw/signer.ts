import { createPrivateKey, sign } from 'node:crypto';
import pg from 'pg';
import { serveFrames } from './wire.ts';

/**
 * The minimum of the signing component. For a proposal or a vote: an Ed25519 signature and one guard row of the member,
 * committed before the signature is sent. For an attestation: a signature and a query whether the member is still the
 * newest. Settings: {key, cert, ca, databaseUrl, schema, signingKeys}, one key a member. A frame is the kind (g or a),
 * the member and the digest; the answer is the signature.
 */

const settings = JSON.parse(process.argv[2] ?? '{}');

async function connect(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: settings.databaseUrl });
  // The database may end first when the benchmark ends.
  client.on('error', () => process.exit(0));
  await client.connect();
  await client.query(`create schema if not exists ${settings.schema}`);
  await client.query(`set search_path = ${settings.schema}`);
  return client;
}

const setup = await connect();
await setup.query(
  'create table raw_guard (id int primary key, position bigint, digest bytea, signature bytea)',
);
await setup.end();

/** Each member has a connection of its own, so that one forced write of the database serves several. */
const members = await Promise.all(
  settings.signingKeys.map(async (pem: string) => {
    const privateKey = createPrivateKey(pem);
    return { privateKey, client: await connect(), position: 0, turn: Promise.resolve() };
  }),
);

const guard = `insert into raw_guard as g values ($1, $2, $3, $4)
  on conflict (id) do update set position = excluded.position, digest = excluded.digest, signature = excluded.signature
  where excluded.position > g.position returning 1`;
const newest = 'select position from raw_guard where id = $1';

const port = await serveFrames(settings, async (frame) => {
  const [kind, index = 0] = frame;
  const member = members[index];
  const digest = frame.subarray(2);
  const signature = sign(null, digest, member.privateKey);
  member.position += 1;
  const query =
    kind === 'g'.charCodeAt(0)
      ? { name: 'guard', text: guard, values: [index, member.position, digest, signature] }
      : { name: 'newest', text: newest, values: [index] };
  member.turn = member.turn.then(() => member.client.query(query));
  await member.turn;
  return signature;
});
process.send?.(String(port));
