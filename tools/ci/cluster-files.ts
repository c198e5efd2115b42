/** Input of the choice of cluster files for one CI run. */
interface Choice {
  /** Paths of all cluster files. */
  readonly files: readonly string[];
  /** The commit under test, in hexadecimal. */
  readonly commit: string;
  /** Paths that the commits of the last day touched. */
  readonly changed: readonly string[];
}

/** Number of parts of the cluster files; a run that needs few of them takes one part. */
export const parts = 3;

/** Paths of code that runs in pods or creates them; a change there needs every cluster file. */
const roots = ['operator/', 'charts/', 'crds/', 'tools/images/', 'components/kit/', 'components/validator/'];

/**
 * The file that creates registers without naming validators: for three minutes their set includes validators of sets that
 * other files have deleted, and creation is refused.
 */
const first = /\/journeys\.cluster\.test\.ts$/;

/**
 * Chooses the cluster files of a run, in the order in which they run. A change to what runs on a cluster takes all files.
 * Any other change takes a third of them. The journeys come first, then files that the commits touched; the others begin at a place that the
 * commit decides, because the time of a run may be over before the last one.
 */
export function chooseClusterFiles({ files, commit, changed }: Choice): readonly string[] {
  const sorted = files.toSorted();
  const seed = Number.parseInt(commit.slice(0, 8), 16);
  const needsAll = changed.some((path) => roots.some((root) => path.startsWith(root)));
  const begin = Number.isNaN(seed) ? 0 : seed % sorted.length;
  const rotated = [...sorted.slice(begin), ...sorted.slice(0, begin)];
  const chosen =
    needsAll || Number.isNaN(seed) ? rotated : sorted.filter((_file, at) => at % parts === seed % parts);
  const touched = sorted.filter((file) => changed.includes(file));
  const all = [...new Set([...touched, ...chosen])];
  return [...all.filter((file) => first.test(file)), ...all.filter((file) => !first.test(file))];
}
