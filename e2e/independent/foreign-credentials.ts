import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { judgeMdocForm } from '#core/credential/mdoc/parse.ts';
import { DOCUMENT_SIGNER, verifyMdoc } from '#core/credential/mdoc/verify.ts';
import { judgeSdJwtForm, verifySdJwtVc } from '#core/credential/sd-jwt/verify.ts';
import { findJwkKey } from '#core/crypto/signature-key.ts';
import { encodeBase64 } from '#core/encoding/base64.ts';
import type { Judgement } from '#core/errors/judgement.ts';
import { parseCertificate } from '#core/trust/certificate.ts';
import { validatePath } from '#core/trust/path.ts';
import { judgeX5c } from '#core/trust/x5c.ts';
import { type Counts, script } from './programs.ts';

const caseSchema = z.object({ name: z.string(), text: z.string() });
const judgedSchema = z.object({
  good: z.array(caseSchema.extend({ claims: z.unknown() })),
  bad: z.array(caseSchema.extend({ code: z.string() })),
});

type Judged = z.output<typeof judgedSchema>;

const madeSchema = z.object({
  atMs: z.number(),
  sdJwts: judgedSchema.extend({
    issuerKey: z.unknown(),
    vct: z.string(),
    nonce: z.string(),
    audience: z.string(),
  }),
  mdocs: judgedSchema.extend({
    root: z.base64url(),
    docType: z.string(),
    session: z.object({ clientId: z.string(), nonce: z.string(), responseUri: z.string() }),
  }),
});

type Made = z.output<typeof madeSchema>;

/** Claims, or the first violation. */
type Judge = (text: string) => Judgement<unknown>;

function sdJwtJudge({ sdJwts, atMs }: Made): Judge {
  const { issuerKey: jwk, vct, nonce, audience } = sdJwts;
  const issuerKey = findJwkKey(jwk);
  if (issuerKey === undefined) throw new Error('no key of the issuer');
  const keyBinding = { nonce, audience, algorithms: ['ES256'] } as const;
  return (text) => {
    const form = judgeSdJwtForm(text);
    if (form.result === undefined) return form;
    const judged = verifySdJwtVc(form.result, {
      issuerKey,
      algorithms: ['ES256'],
      types: [vct],
      keyBinding,
      atMs,
    });
    return judged.result === undefined ? judged : { violations: [], result: judged.result.claims };
  };
}

function mdocJudge({ mdocs, atMs }: Made): Judge {
  const { root, docType, session } = mdocs;
  const anchors = [parseCertificate(Buffer.from(root, 'base64url'))];
  return (text) => {
    const form = judgeMdocForm(text);
    if (form.result === undefined) return form;
    const chain = judgeX5c(form.result.issuerAuth.x5chain.map(encodeBase64));
    if (chain.result === undefined) return chain;
    const path = validatePath({ path: chain.result, anchors, atMs, purpose: DOCUMENT_SIGNER });
    if (path.result === undefined) return path;
    const { leaf, leafKey: key } = path.result;
    const judged = verifyMdoc(form.result, {
      issuer: { key, notBeforeMs: leaf.notBeforeMs, notAfterMs: leaf.notAfterMs },
      docType,
      session: { ...session, encryptionKeyThumbprint: undefined },
      atMs,
    });
    return judged.result === undefined ? judged : { violations: [], result: judged.result.claims };
  };
}

/** Every credential is one check: accepted with its claims, or refused with its code. */
function countCases(what: string, { good, bad }: Judged, judge: Judge): Counts {
  const wrong: string[] = [];
  for (const { name, text, claims } of good) {
    const { result, violations } = judge(text);
    if (!isDeepStrictEqual(result, claims)) wrong.push(`${name}: ${JSON.stringify(violations)}`);
  }
  for (const { name, text, code } of bad) {
    const [violation] = judge(text).violations;
    if (violation?.code !== code) wrong.push(`${name}: ${violation?.code ?? 'accepted'}, expected ${code}`);
  }
  const enough = good.length > 0 && bad.length >= 200;
  if (!enough) wrong.push(`${good.length} good and ${bad.length} malformed ones are too few`);
  const sizes = `${good.length} to accept with their claims, ${bad.length} to refuse with their code`;
  process.stdout.write(`${wrong.length === 0 ? 'ok ' : 'NOT'} ${what}: ${sizes}\n`);
  for (const each of wrong) process.stdout.write(`      ${each}\n`);
  return { passed: Math.max(0, good.length + bad.length - wrong.length), failed: wrong.length };
}

/** Credentials that issuers of others make, good ones and malformed ones, judged by our verifiers. */
export async function foreignCredentials(dir: string): Promise<Counts[]> {
  const file = join(dir, 'foreign-credentials.json');
  const theirs = await script('foreign_credentials.py', [file]);
  if (theirs.failed > 0) return [theirs];
  const made = madeSchema.parse(JSON.parse(readFileSync(file, 'utf8')));
  return [
    theirs,
    countCases('SD-JWT VCs of sd-jwt', made.sdJwts, sdJwtJudge(made)),
    countCases('mdocs of pymdoccbor', made.mdocs, mdocJudge(made)),
  ];
}
