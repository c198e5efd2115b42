import { argon2, randomBytes } from 'node:crypto';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { generateAuthenticationOptions, verifyAuthenticationResponse } from '@simplewebauthn/server';
import pg from 'pg';

/**
 * The minimum of a sign-in. `PASSWORDS COUNT` derives so many keys by argon2id at the product's cost, two at a time, each with
 * the commits of a sign-in. Over mutual TLS: `GET /` gives options for a passkey, `POST /` verifies an assertion, with the
 * commits of both. Settings: {key, cert, ca, databaseUrl, schema, commits, passkeyCommits, rpID, origin, publicKey}.
 */
const { databaseUrl, schema, commits, passkeyCommits, rpID, origin, publicKey, ...identity } = JSON.parse(
  process.argv[2] ?? '{}',
);
const database = new pg.Pool({ connectionString: databaseUrl, max: 10 });
await database.query(`create schema if not exists ${schema}`);
await database.query(
  `create table if not exists ${schema}.sign_ins (id bigserial primary key, at timestamptz)`,
);

/** As the product derives: 19 MiB, two passes, one lane. */
function derive(message: string): Promise<Buffer> {
  const cost = { parallelism: 1, tagLength: 32, memory: 19_456, passes: 2 };
  return new Promise((resolve, reject) => {
    argon2('argon2id', { message, nonce: randomBytes(16), ...cost }, (error, tag) =>
      error === null ? resolve(tag) : reject(error),
    );
  });
}

async function commit(count: number): Promise<void> {
  for (let n = 0; n < count; n++) await database.query(`insert into ${schema}.sign_ins (at) values (now())`);
}

async function signIn(count: number): Promise<void> {
  let left = count;
  const inTurn = async () => {
    while (left-- > 0) {
      await derive('marble orchard seldom rains');
      await commit(commits);
    }
  };
  await Promise.all([inTurn(), inTurn()]);
}

process.on('message', (message) => {
  void signIn(Number(message)).then(() => process.send?.('done'));
});

const challenges = new Map<string, string>();

async function begin(): Promise<object> {
  const options = await generateAuthenticationOptions({ rpID, userVerification: 'required' });
  await commit(1);
  challenges.set(options.challenge, options.challenge);
  return options;
}

async function end(text: string): Promise<object> {
  const { response, challenge } = JSON.parse(text);
  const { verified } = await verifyAuthenticationResponse({
    response,
    expectedChallenge: challenge,
    expectedOrigin: origin,
    expectedRPID: rpID,
    requireUserVerification: true,
    credential: {
      id: response.id,
      publicKey: new Uint8Array(Buffer.from(publicKey, 'base64url')),
      counter: 0,
    },
  });
  if (!verified || !challenges.delete(challenge)) throw new Error('the assertion does not verify');
  await commit(passkeyCommits - 1);
  return { verified };
}

const server = createServer(
  { ...identity, requestCert: true, rejectUnauthorized: true, minVersion: 'TLSv1.3' },
  (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const work = request.method === 'GET' ? begin() : end(Buffer.concat(chunks).toString());
      work.then(
        (answer) => response.end(JSON.stringify(answer)),
        (error: unknown) => response.writeHead(500).end(String(error)),
      );
    });
  },
);
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => {
  process.send?.(`https://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
