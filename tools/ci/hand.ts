/** Input of the choice of cluster files for one CI run. */
interface HandInput {
  /** Paths of all cluster files. */
  readonly files: readonly string[];
  /** The commit under test, in hexadecimal. */
  readonly commit: string;
  /** Paths that the commits of the last day touched. */
  readonly changed: readonly string[];
}

/** Number of parts of the cluster files; one run takes one part. */
export const hands = 3;

/** Paths of code that runs in pods or creates them; a change there needs every cluster file. */
const roots = ['operator/', 'charts/', 'crds/', 'tools/images/', 'components/kit/', 'components/validator/'];

/**
 * Chooses the cluster files of a run. A change to what runs on a cluster takes all files. Any other change takes a third
 * of them, chosen by the commit, and the cluster files that it touched itself.
 */
export function chooseHand({ files, commit, changed }: HandInput): readonly string[] {
  const sorted = files.toSorted();
  if (changed.some((path) => roots.some((root) => path.startsWith(root)))) return sorted;
  const hand = Number.parseInt(commit.slice(0, 8), 16) % hands;
  if (Number.isNaN(hand)) return sorted;
  return sorted.filter((file, position) => position % hands === hand || changed.includes(file));
}
