import { createHash, X509Certificate } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { jwsCases } from '../../components/tenant/trust/lists/testing/jws-cases.ts';
import {
  importHere,
  importInThreads,
  type ListCase,
  type Verdict,
} from '../../components/tenant/trust/lists/testing/verdicts.ts';
import { makeCast, unsignedLists, xmlCases } from '../../components/tenant/trust/lists/testing/xml-cases.ts';
import { dssAbsence, runDss, signByDss } from './dss.ts';
import { type Counts, python } from './programs.ts';
import { publishedLists } from './published-lists.ts';

interface Judge {
  readonly name: string;
  /** What it does otherwise, by the name of the list, with the reason; it must do so. */
  readonly differs: Readonly<Record<string, string>>;
  judge(cases: readonly ListCase[], dir: string): Promise<Verdict[]>;
}

/** Reasons of differences; what is accepted has the same digested text, so nothing but signed services are read. */
const why = {
  transforms: 'it allows every transform of which the result is the digested text',
  unknown: 'it skips a transform that it does not know',
  order: 'it applies the enveloped transform first, wherever it stands',
  comments: 'it allows a canonical form with comments, and the list has none',
  id: 'its references find attributes named Id alone',
  named: 'it does not compare the certificate that the signed properties name',
  type: 'it does not look at the type of the reference to the signed properties',
  target: 'it does not look at the target of the qualifying properties',
  element: 'it allows a reference to the root by an XPointer',
  rootId: 'it allows no reference to the root by its Id',
  outside: 'it digests the root alone, without processing instructions beside it',
  weak: 'it allows RSA keys below 2048 bits',
  sigT: 'it knows no sigT',
  fractions: 'it refuses fractions of seconds, which its standard does not have',
  version: 'it judges versions by profiles alone',
  operator:
    'it requires that the organisation and the country of the signer are those of the scheme; we pin the certificate',
  thumbprint: 'it does not compare x5t#S256',
} as const;

const transforms = 'form: transforms:';
const mostShown = 40;

/** What both judges accept and the importer refuses. */
const differingBoth: Readonly<Record<string, string>> = {
  [`${transforms} XPath`]: why.transforms,
  [`${transforms} the enveloped one alone`]: why.transforms,
  [`${transforms} the enveloped one twice`]: why.transforms,
  [`${transforms} prefixes that are rendered inclusively`]: why.transforms,
  [`${transforms} comments`]: why.comments,
  'form: is canonicalized with comments': why.comments,
  'form: qualifies another signature': why.target,
  'published: NO': why.weak,
};

const differingDss: Readonly<Record<string, string>> = {
  ...differingBoth,
  [`${transforms} XPath instead of the enveloped one`]: why.transforms,
  'form: covers the document by XPointer': why.element,
};

const differingOpenvc: Readonly<Record<string, string>> = {
  ...differingBoth,
  [`${transforms} XSLT`]: why.unknown,
  [`${transforms} the enveloped one last`]: why.order,
  'wrapping: an ID with the value of an Id': why.id,
  'wrapping: an id with the value of an Id': why.id,
  'wrapping: an xml:id with the value of an Id': why.id,
  'tests, the root by its Id': why.rootId,
  'tests, the root by its Id, comments in values': why.rootId,
  'tests, the root by its Id, comments around the root': why.rootId,
  'tests, the root by its Id, anchors inside the signature': why.rootId,
  'tests, the root by its Id, CDATA and character references': why.rootId,
  'published: BE': why.rootId,
  'form: the name of another certificate': why.named,
  'form: covers properties of another type': why.type,
  'XML: a processing instruction before the root': why.outside,
  'XML: a processing instruction behind the root': why.outside,
  'JWS: another version': why.version,
  'JWS: a critical parameter that is known': why.sigT,
  'JWS: fractions of seconds': why.fractions,
  'JWS: an operator that is not the signer': why.operator,
  'JWS: the thumbprint of another certificate': why.thumbprint,
};

const verdictSchema = z.object({
  accepted: z.boolean(),
  reason: z.string(),
  anchors: z.array(z.base64().transform((text) => Buffer.from(text, 'base64'))),
});

/** The verdict of a line of a program; anchors are certificates of authorities that have not expired. */
function verdictOf(line: string, atMs: number): Verdict {
  const { accepted, reason, anchors } = verdictSchema.parse(JSON.parse(line));
  if (!accepted) return { reason };
  const usable = anchors.filter((der) => {
    const { ca, validToDate } = new X509Certificate(der);
    return ca && validToDate.getTime() >= atMs;
  });
  const hashes = usable.map((der) => createHash('sha256').update(der).digest('hex'));
  return { anchors: [...new Set(hashes)].toSorted() };
}

/** A judge that is another program: it reads lists and signers from files. */
function programJudge(
  name: string,
  differs: Judge['differs'],
  run: (tasks: readonly (readonly string[])[]) => Promise<string[]>,
): Judge {
  return {
    name,
    differs,
    judge: async (cases, dir) => {
      const tasks = cases.map(({ document, signer, atMs }, at) => {
        const files = [join(dir, `${at}.list`), join(dir, `${at}.der`)] as const;
        writeFileSync(files[0], document);
        writeFileSync(files[1], signer);
        return [...files, `${atMs}`];
      });
      const lines = await run(tasks);
      if (lines.length !== cases.length)
        throw new Error(`${name} judged ${lines.length} of ${cases.length} lists`);
      return cases.map(({ atMs }, at) => verdictOf(lines[at] ?? '', atMs));
    },
  };
}

const openvc = programJudge('openvc-core', differingOpenvc, async (tasks) => {
  const { code, output } = await python(
    'trust_lists.py',
    [],
    tasks.map((task) => task.join('\t')).join('\n'),
  );
  if (code !== 0) throw new Error(`trust_lists.py ended with ${code}`);
  return output.trim().split('\n');
});

const dss = programJudge('EU DSS', differingDss, (tasks) => runDss('judge', tasks));

const textOf = ({ anchors, reason }: Verdict) =>
  anchors === undefined ? `refused: ${reason?.slice(0, 200)}` : `accepted with ${anchors.length} anchors`;

function isExpected({ anchors }: Verdict, expected: ListCase['expected']): boolean {
  if (expected === 'accepted') return anchors !== undefined;
  return expected === 'refused' ? anchors === undefined : isDeepStrictEqual(anchors, expected);
}

/** Faults of our own verdicts, which the cases name. */
function ownFaults(cases: readonly ListCase[], ours: readonly Verdict[]): string[] {
  return cases.flatMap(({ name, expected }, at) => {
    const verdict = ours[at] ?? {};
    return isExpected(verdict, expected) ? [] : [`${name}: ${textOf(verdict)}`];
  });
}

/** Lists of which another judge says something else than we do, but for those that are listed; and those that no longer differ. */
function differences(
  { differs }: Judge,
  cases: readonly ListCase[],
  ours: readonly Verdict[],
  theirs: readonly Verdict[],
): string[] {
  return cases.flatMap(({ name }, at) => {
    const [own = {}, other = {}] = [ours[at], theirs[at]];
    const isSame = isDeepStrictEqual(own.anchors, other.anchors);
    if (isSame === (differs[name] === undefined)) return [];
    return [`${name}: we ${textOf(own)}; it ${textOf(other)}${isSame ? '; listed as a difference' : ''}`];
  });
}

function count(what: string, total: number, faults: readonly string[]): Counts {
  process.stdout.write(`${faults.length === 0 ? 'ok ' : 'NOT'} ${what}: ${total} lists\n`);
  for (const fault of faults.slice(0, mostShown)) process.stdout.write(`      ${fault}\n`);
  if (faults.length > mostShown) process.stdout.write(`      and ${faults.length - mostShown} more\n`);
  return { passed: total - faults.length, failed: faults.length };
}

interface Comparison {
  readonly what: string;
  readonly cases: readonly ListCase[];
  readonly judges: readonly Judge[];
  readonly dir: string;
  readonly importAll: (cases: readonly ListCase[]) => Promise<Verdict[]>;
}

/** Each list is one check of our verdict, and one more for each judge that must say the same. */
async function compare({ what, cases, judges, dir, importAll }: Comparison): Promise<Counts[]> {
  if (cases.length === 0) return [];
  const ours = await importAll(cases);
  const counts = [count(`${what}, our verdict`, cases.length, ownFaults(cases, ours))];
  for (const judge of judges) {
    const faults = await faultsOf(judge, cases, ours, dir);
    counts.push(count(`${what}, ${judge.name}`, cases.length, faults));
  }
  return counts;
}

/** A judge that fails is a fault; the other programs run nevertheless. */
async function faultsOf(
  judge: Judge,
  cases: readonly ListCase[],
  ours: readonly Verdict[],
  dir: string,
): Promise<string[]> {
  try {
    return differences(judge, cases, ours, await judge.judge(cases, dir));
  } catch (error) {
    const reason = error instanceof Error ? error.message : `${error}`;
    return cases.map(({ name }) => `${name}: not judged: ${reason}`);
  }
}

/** A difference is listed for a case that exists. */
function assertListed(cases: readonly ListCase[]): void {
  const names = new Set(cases.map(({ name }) => name));
  const unknown = Object.keys({ ...differingDss, ...differingOpenvc }).filter((name) => !names.has(name));
  if (unknown.length > 0) throw new Error(`no such lists: ${unknown.join('; ')}`);
}

/**
 * Trust lists that others and we sign, good ones and bad ones: our importer, EU DSS and openvc-core must say the same.
 *
 * @param full published lists of any size, also with changed bytes; else those below 1 MB as they are
 */
export async function trustLists(parent: string, full: boolean): Promise<Counts[]> {
  const dir = join(parent, 'trust-lists');
  mkdirSync(dir, { recursive: true });
  process.stdout.write('\ntrust lists\n');
  const absent = dssAbsence();
  if (absent !== undefined) process.stdout.write(`left out: EU DSS: ${absent}\n`);
  const judges = absent === undefined ? [dss, openvc] : [openvc];
  const cast = await makeCast();
  const xml = xmlCases(cast, absent === undefined ? await signByDss(unsignedLists(cast), dir) : []);
  const published = absent === undefined ? await publishedLists(dir, full) : [];
  const jws = await jwsCases(cast);
  if (absent === undefined) assertListed([...xml, ...published, ...jws]);
  return [
    ...(await compare({ what: 'XML', cases: xml, judges, dir, importAll: importHere })),
    ...(await compare({ what: 'published XML', cases: published, judges, dir, importAll: importInThreads })),
    ...(await compare({ what: 'JWS', cases: jws, judges: [openvc], dir, importAll: importHere })),
  ];
}
