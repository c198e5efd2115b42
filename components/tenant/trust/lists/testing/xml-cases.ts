import {
  EXCLUSIVE,
  GRANTED,
  INCLUSIVE,
  listBody,
  makeCertificate,
  rootClose,
  rootOpen,
  type SignatureWish,
  signByXmlsec,
  signList,
  type TestCertificate,
  type TestList,
  WITHDRAWN,
  xmlsecAbsence,
} from '../lists.fixture.ts';
import {
  MALFORMATIONS,
  PROLOGUES,
  REFUSED_SIGNATURES,
  REFUSED_TRANSFORMS,
  WRAPPINGS,
  withAnchorsInSignature,
} from '../xml/hostile.fixture.ts';
import type { ListCase } from './verdicts.ts';

type Signers = Readonly<
  Record<'RSA' | 'P-256' | 'P-384' | 'P-521' | 'stranger' | 'other' | 'evil', TestCertificate>
>;

/** Certificates and a list of theirs, in which some services and some certificates make no anchors. */
export interface Cast {
  readonly atMs: number;
  readonly signers: Signers;
  readonly list: TestList;
  readonly anchors: readonly string[];
  /** The certificates of the anchors, base64. */
  readonly certificates: readonly [string, string, string];
  /** The certificate of one anchor, base64, and of it with one changed byte. */
  readonly changed: readonly [string, string];
}

const CA_PKC = 'http://uri.etsi.org/TrstSvc/Svctype/CA/PKC';
const QTST = 'http://uri.etsi.org/TrstSvc/Svctype/TSA/QTST';

/** Characters that a canonical form escapes, in an attribute and in text, and an element of no namespace. */
const extension =
  '<x:x xmlns:x="urn:x" a="&quot;&amp;&lt;&#x9;&#xA;&#xD;>\'"><y xmlns="">&amp;&lt;&gt;&#xD;"\'</y></x:x>';

export async function makeCast(): Promise<Cast> {
  const [rsa, p256, p384, p521, stranger, other, evil] = await Promise.all([
    makeCertificate({ name: 'Signer', algorithm: 'RSA-2048' }),
    makeCertificate({ name: 'Signer' }),
    makeCertificate({ name: 'Signer', algorithm: 'P-384' }),
    makeCertificate({ name: 'Signer', algorithm: 'P-521' }),
    makeCertificate({ name: 'Stranger' }),
    makeCertificate({ name: 'Other', algorithm: 'RSA-2048' }),
    makeCertificate({ name: 'Evil', algorithm: 'RSA-2048' }),
  ]);
  const [one, two, three, old, leaf] = await Promise.all([
    makeCertificate({ name: 'One', algorithm: 'RSA-2048' }),
    makeCertificate({ name: 'Two' }),
    makeCertificate({ name: 'Three', algorithm: 'P-384' }),
    makeCertificate({ name: 'Old', notAfter: '2021-01-01T00:00:00Z' }),
    makeCertificate({ name: 'Leaf', ca: false }),
  ]);
  const services = [
    { certificates: [one.base64, two.base64], extension },
    { type: CA_PKC, status: GRANTED, previous: WITHDRAWN, certificates: [three.base64, one.base64] },
    { type: QTST, certificates: [evil.base64] },
    { status: WITHDRAWN, previous: GRANTED, certificates: [evil.base64] },
    { certificates: [old.base64, leaf.base64] },
  ];
  const changed = Buffer.from(one.der);
  changed[changed.length - 1] = (changed.at(-1) ?? 0) ^ 1;
  return {
    atMs: Date.now(),
    signers: { RSA: rsa, 'P-256': p256, 'P-384': p384, 'P-521': p521, stranger, other, evil },
    list: { sequence: 7, operator: 'Ü &amp; Söhne &lt;GmbH&gt; €', services },
    anchors: [one, two, three].map(({ sha256 }) => sha256).toSorted(),
    certificates: [one.base64, two.base64, three.base64],
    changed: [one.base64, changed.toString('base64')],
  };
}

/** A document that somebody signed, by name. */
export type Signed = readonly [name: string, document: string, signer: TestCertificate];

/** A list for others to sign. */
interface UnsignedList {
  readonly name: string;
  readonly version: 5 | 6;
  readonly text: string;
  readonly signer: TestCertificate;
}

export function unsignedLists({ signers, list }: Cast): UnsignedList[] {
  return (['RSA', 'P-256'] as const).flatMap((kind) =>
    ([5, 6] as const).map((version) => ({
      name: `version ${version}, ${kind}`,
      version,
      text: `${rootOpen}${listBody({ ...list, version })}${rootClose}`,
      signer: signers[kind],
    })),
  );
}

/** Lists that xmlsec1 signs; none without it. */
function signedByXmlsec({ signers, list }: Cast): Signed[] {
  const absent = xmlsecAbsence();
  if (absent !== undefined) {
    process.stdout.write(`left out: lists of xmlsec1: ${absent}\n`);
    return [];
  }
  const canonicalizations = { exclusive: EXCLUSIVE, inclusive: INCLUSIVE };
  return (['RSA', 'P-256', 'P-384'] as const).flatMap((kind) =>
    Object.entries(canonicalizations).map(([name, uri]): Signed => {
      const text = signByXmlsec(list, signers[kind], uri);
      return [`xmlsec1, ${name}, ${kind}`, text, signers[kind]];
    }),
  );
}

/** Lists that the tests of the importer sign without a library. */
function signedByTests({ signers, list }: Cast): Signed[] {
  const wishes: Readonly<Record<string, SignatureWish>> = {
    'P-256': { signer: signers['P-256'] },
    'P-384': { signer: signers['P-384'], hash: 'sha384', digest: 'sha384' },
    'P-521': { signer: signers['P-521'], hash: 'sha512', digest: 'sha512' },
    RSA: { signer: signers.RSA },
    'RSA with SHA-512': { signer: signers.RSA, hash: 'sha512' },
    'RSA-PSS': { signer: signers.RSA, pss: true },
    'RSA-PSS with SHA-384': { signer: signers.RSA, pss: true, hash: 'sha384' },
    'the certificate by its SHA-1': { signer: signers['P-256'], namedDigest: 'sha1' },
    'the root by its Id': { signer: signers['P-256'], listReference: 'Id="list" URI="#TL"' },
    'two certificates': { signer: signers.RSA, carried: [signers.RSA.base64, signers.other.base64] },
  };
  return Object.entries(wishes).map(([name, wish]) => [`tests, ${name}`, signList(list, wish), wish.signer]);
}

/** Changes of a good list that change nothing of what is signed. */
const harmless: Readonly<Record<string, (text: string, cast: Cast) => string>> = {
  'comments in values': (text, { changed: [anchor] }) =>
    text
      .replace('<TSLSequenceNumber>', '<TSLSequenceNumber><!-- 9 -->')
      .replace(`${GRANTED}<`, `${GRANTED.slice(0, 9)}<!-- x -->${GRANTED.slice(9)}<`)
      .replace(anchor, `${anchor.slice(0, 40)}<!-- y -->${anchor.slice(40)}`),
  'comments around the root': (text) =>
    `${text.replace(/^(?:<\?xml [^>]*>)?/, '$&\n<!-- a -->')}\n<!-- b -->\n`.trimStart(),
  'anchors inside the signature': (text, { signers }) => withAnchorsInSignature(text, signers.evil),
  'CDATA and character references': (text) =>
    text
      .replace('A provider', '<![CDATA[A provi]]>der')
      .replace('A service', '&#65; service')
      .replace(`>${GRANTED}<`, `>${GRANTED.replace('granted', '<![CDATA[gran]]>&#x74;ed')}<`),
};

/** Changes of a signed list after which it must be refused; every signed list is changed in each way. */
const harmful: Readonly<Record<string, (text: string, cast: Cast) => string>> = {
  'a changed byte in an anchor': (text, { changed: [before, after] }) => text.replace(before, after),
  'a service that was withdrawn': (text) => text.replace(WITHDRAWN, GRANTED),
  'a changed sequence number': (text) => text.replace('TSLSequenceNumber>7', 'TSLSequenceNumber>8'),
  'no signature': (text) => text.replace(/<(\w+):Signature [\s\S]*<\/\1:Signature>/, ''),
};

/** A change that must change something. */
function altered(text: string, change: (text: string, cast: Cast) => string, cast: Cast): string {
  const result = change(text, cast);
  if (result === text) throw new Error('a change of a list changes nothing');
  return result;
}

function signedCases([name, document, signer]: Signed, cast: Cast): ListCase[] {
  const { anchors, signers } = cast;
  const pinned = { signer: signer.der, atMs: cast.atMs };
  return [
    { name, document, ...pinned, expected: anchors },
    ...Object.entries(harmless).map(([change, apply]) => ({
      name: `${name}, ${change}`,
      document: altered(document, apply, cast),
      ...pinned,
      expected: anchors,
    })),
    ...Object.entries(harmful).map(([change, apply]) => ({
      name: `${name}, ${change}`,
      document: altered(document, apply, cast),
      ...pinned,
      expected: 'refused' as const,
    })),
    {
      ...pinned,
      name: `${name}, another pinned signer`,
      document,
      signer: signers.other.der,
      expected: 'refused',
    },
  ];
}

/** Lists whose signature does not have the form of the profile, with what they depart in. */
function formWishes({ signers }: Cast): Readonly<Record<string, Partial<SignatureWish>>> {
  const { other, evil } = signers;
  return {
    'signed by another one': { signer: other },
    'signed by another one, beside the certificate of the pinned one': {
      signer: evil,
      carried: [signers.RSA.base64, evil.base64],
      named: signers.RSA.base64,
    },
    'SHA-1 in the signature': { hash: 'sha1' },
    'SHA-1 in a digest': { digest: 'sha1' },
    'the name of another certificate': { named: other.base64 },
    'no certificate': { carried: [] },
    ...Object.fromEntries(
      Object.entries(REFUSED_TRANSFORMS).map(([name, listTransforms]) => [
        `transforms: ${name}`,
        { listTransforms },
      ]),
    ),
    ...Object.fromEntries(Object.entries(REFUSED_SIGNATURES).map(([name, [wish]]) => [name, wish])),
  };
}

function hostileCases(cast: Cast): ListCase[] {
  const { list, signers } = cast;
  const signer = signers.RSA;
  const good = signList(list, { signer });
  const documents: readonly (readonly [string, string])[] = [
    ...Object.entries(WRAPPINGS).map(
      ([name, { text }]) => [`wrapping: ${name}`, text(list, signer, signers.evil)] as const,
    ),
    ...Object.entries(formWishes(cast)).map(
      ([name, wish]) => [`form: ${name}`, signList(list, { signer, ...wish })] as const,
    ),
    ...Object.entries(PROLOGUES).map(([name, prologue]) => [`XML: ${name}`, `${prologue}${good}`] as const),
    ...Object.entries(MALFORMATIONS).map(
      ([name, change]) => [`XML: ${name}`, altered(good, change, cast)] as const,
    ),
  ];
  const refused = { signer: signer.der, atMs: cast.atMs, expected: 'refused' } as const;
  return documents.map(([name, document]) => ({ name, document, ...refused }));
}

/** A list whose signed status must not become another one by a comment. */
function cutStatus({ signers, list, anchors, atMs }: Cast): ListCase {
  const services = [
    ...(list.services ?? []),
    { status: `${GRANTED}-not`, certificates: [signers.evil.base64] },
  ];
  const document = signList({ ...list, services }, { signer: signers.RSA });
  return {
    name: 'a comment in the middle of a status',
    document: document.replace(`${GRANTED}-not`, `${GRANTED}<!---->-not`),
    signer: signers.RSA.der,
    atMs,
    expected: anchors,
  };
}

/** All lists in XML, good ones and bad ones. @param foreign good lists that others have signed */
export function xmlCases(cast: Cast, foreign: readonly Signed[]): ListCase[] {
  const signed = [...foreign, ...signedByXmlsec(cast), ...signedByTests(cast)];
  return [...signed.flatMap((one) => signedCases(one, cast)), cutStatus(cast), ...hostileCases(cast)];
}
