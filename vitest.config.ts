import { defineConfig } from 'vitest/config';

// two at a time also on two cores: tests wait more than they compute
const shared = { environment: 'node', pool: 'threads', isolate: false, maxWorkers: 2 } as const;

// .ci/run adds up what every suite reports
const reports = process.env['CHANCERY_TEST_REPORTS'];
const reporting =
  reports === undefined
    ? {}
    : {
        reporters: ['default', 'json'],
        outputFile: { json: `${reports}/vitest-${process.pid}.json` },
      };

export default defineConfig({
  test: {
    ...reporting,
    // The SignalR client rejects the promise of a handshake before its own code awaits it, when a replica that stops
    // answers at once; the rejection reaches its caller all the same.
    onUnhandledError: ({ message }) => !message.startsWith('Server returned handshake error: '),
    projects: [
      {
        test: {
          ...shared,
          name: 'unit',
          include: [
            'components/**/*.test.ts',
            'operator/**/*.test.ts',
            'tools/**/*.test.ts',
            'e2e/perf/**/*.test.ts',
            'e2e/cluster/**/*.test.ts',
          ],
          exclude: [
            '**/*.component.test.ts',
            '**/*.cluster.test.ts',
            '**/*.nodes.test.ts',
            '**/*.spire.test.ts',
            '**/node_modules/**',
          ],
        },
      },
      {
        test: {
          ...shared,
          name: 'component',
          include: ['components/**/*.component.test.ts', 'operator/**/*.component.test.ts'],
          globalSetup: ['components/kit/testing/postgres.setup.ts'],
          testTimeout: 30_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          ...shared,
          name: 'e2e',
          include: ['e2e/**/*.e2e.test.ts'],
          sequence: { groupOrder: 1 },
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        // needs Chromium at /usr/bin/chromium
        test: {
          ...shared,
          name: 'browser',
          include: ['e2e/browser/**/*.browser.test.ts'],
          testTimeout: 120_000,
          hookTimeout: 180_000,
        },
      },
      {
        // needs a Kubernetes that KUBECONFIG names
        test: {
          ...shared,
          name: 'cluster',
          globalSetup: ['e2e/cluster/images.setup.ts'],
          include: ['e2e/cluster/**/*.cluster.test.ts', '{components,operator,tools}/**/*.cluster.test.ts'],
          fileParallelism: false,
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        // needs one of five nodes, and the command in NODE_POWER that kills and cuts them
        test: {
          ...shared,
          name: 'nodes',
          globalSetup: ['e2e/cluster/images.setup.ts', 'e2e/cluster/nodes/placed.setup.ts'],
          include: ['e2e/cluster/nodes/**/*.nodes.test.ts'],
          fileParallelism: false,
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        // needs what `cluster` needs, and the programs of SPIRE, which it fetches and builds
        test: {
          ...shared,
          name: 'spire',
          globalSetup: ['e2e/cluster/images.setup.ts', 'e2e/cluster/spire/spire.setup.ts'],
          include: ['e2e/cluster/spire/**/*.spire.test.ts'],
          fileParallelism: false,
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        // one test reads every file of the repository
        test: { ...shared, name: 'tidy', include: ['e2e/tidy/**/*.test.ts'], testTimeout: 30_000 },
      },
    ],
  },
});
