import { defineConfig } from 'vitest/config';

const shared = { environment: 'node', pool: 'threads', isolate: false } as const;

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
    projects: [
      {
        test: {
          ...shared,
          name: 'unit',
          include: ['components/**/*.test.ts', 'e2e/perf/**/*.test.ts'],
          exclude: ['components/**/*.component.test.ts', '**/node_modules/**'],
        },
      },
      {
        test: {
          ...shared,
          name: 'component',
          include: ['components/**/*.component.test.ts'],
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
          fileParallelism: false,
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      { test: { ...shared, name: 'tidy', include: ['e2e/tidy/**/*.test.ts'] } },
    ],
  },
});
