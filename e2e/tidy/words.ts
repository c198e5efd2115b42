import { isTest, listFiles } from './repository.ts';

/** A word of this project's earlier language, or a phrase for what a program does, and where it is still right. */
interface Word {
  readonly pattern: RegExp;
  readonly instead: string;
  /** Files in which the word means something else. */
  readonly besides?: RegExp;
}

const words: readonly Word[] = [
  // the subjects on the bus have this name
  { pattern: /(?<![`'"\w])doorbells?\b(?!\.)/i, instead: 'wake signal' },
  { pattern: /\b(?:rung|kicks?|kicked)\b/i, instead: 'notify, wake' },
  { pattern: /\b(?:whoever|somebody)\b/i, instead: 'the name of the process or person' },
  {
    pattern: /\bnobody\b/,
    instead: 'no client, no process',
    besides: /standalone|local-mode\.md|^[A-Z]+\.md$/,
  },
  { pattern: /\blets? go of\b/i, instead: 'releases' },
  { pattern: /\b(?:is|are|was|were) told\b/i, instead: 'is notified' },
  { pattern: /\bgoes on\b/i, instead: 'continues' },
  { pattern: /\bhands? on (?:what|to|it)\b/i, instead: 'forwards' },
  { pattern: /\blooks? after\b/i, instead: 'manages' },
  { pattern: /\bcolleagues?\b/i, instead: 'peers' },
  { pattern: /\bfarewells?\b/i, instead: 'stop notifications' },
  { pattern: /\b(?:burials?|buried|outdone)\b/i, instead: 'eviction, superseded' },
  { pattern: /\b(?:whereabouts|sightings?|untold)\b/i, instead: 'directory, reports, unreported' },
  {
    pattern: /\b(?:strangers?|peace)\b/i,
    instead: 'unknown registers, quiet period',
    besides: /common-passwords/,
  },
  {
    pattern: /\b(?:rivals?|lingers?|cadence|handover)\b/i,
    instead: 'competing managers, delay, interval, transfer',
  },
  {
    pattern:
      /\b(?:interface|type) (?:Told|Wanted|Given|Asked|Known|Kept|Whole|Place|Sought|Seat|Obey|Surroundings|Patience)\b/,
    instead: 'a noun',
  },
  {
    pattern: /\b(?:Conductor|Prosecutor|Suspicions|Strangers|Whereabouts|Charges)\b/,
    instead: 'the table of terms',
  },
];

/** Files that are bundled into the image of PostgreSQL, whose digest is the image's revision. */
const bundled = /^components\/kit\/config\/|^tools\/images\/(?:layers|oci|postgres)\//;
const written = /\.(?:ts|md|yaml|tpl|proto)$/;

/** `file:line: text` of each word that production code and documents should not have. */
export function findWords(): { readonly examined: number; readonly found: readonly string[] } {
  const folders = ['components', 'operator', 'charts', 'crds', 'docs', 'spire', 'tools', 'protos'];
  const pages = listFiles('.').filter(({ path }) => /^[A-Z]+\.md$/.test(path));
  const files = [...listFiles(...folders), ...pages].filter(
    ({ path }) => written.test(path) && !isTest(path) && !bundled.test(path),
  );
  const found = files.flatMap(({ path, text }) =>
    text
      .split('\n')
      .flatMap((line, index) =>
        words
          .filter(({ pattern, besides }) => pattern.test(line) && besides?.test(path) !== true)
          .map(({ instead }) => `${path}:${index + 1}: ${line.trim()} (write: ${instead})`),
      ),
  );
  return { examined: files.length, found };
}
