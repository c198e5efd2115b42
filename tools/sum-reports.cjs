// Adds up the suites' reports and prints the slowest files, the flaky ones, those left out and the closing line. Exits 1 when anything failed
// or nothing ran.
'use strict';
const fs = require('node:fs');
const path = require('node:path');

const folder = process.argv[2];
/** At most so many lines of what a failed test says. */
const linesOfMessage = 12;
const slowestFiles = 30;
let passed = 0;
let failed = 0;
const failures = [];
const durations = [];
for (const name of fs.readdirSync(folder).filter((file) => file.endsWith('.json'))) {
  const report = JSON.parse(fs.readFileSync(path.join(folder, name), 'utf8'));
  const counts =
    report.numTotalTests === undefined
      ? { passed: report.passed, failed: report.failed }
      : {
          passed: report.numPassedTests,
          failed: report.numFailedTests + (report.success || report.numFailedTests > 0 ? 0 : 1),
        };
  process.stdout.write(`${name.replace(/\.json$/, '')}: ${counts.passed} passed, ${counts.failed} failed\n`);
  failures.push(...(report.testResults ?? []).flatMap(failuresOf));
  for (const { name, startTime, endTime } of report.testResults ?? []) {
    durations.push({ file: path.relative(process.cwd(), name), seconds: (endTime - startTime) / 1000 });
  }
  passed += counts.passed;
  failed += counts.failed;
}
if (durations.length > 0)
  process.stdout.write(`\nThe slowest of ${durations.length} test files, in seconds\n`);
for (const { file, seconds } of durations.sort((a, b) => b.seconds - a.seconds).slice(0, slowestFiles)) {
  process.stdout.write(`${seconds.toFixed(1).padStart(7)}  ${file}\n`);
}
for (const [name, title] of [
  ['flaky', 'Flaky: failed, and passed when it ran once more'],
  ['left-out', 'Not run'],
]) {
  const list = path.join(folder, name);
  if (fs.existsSync(list)) process.stdout.write(`\n${title}\n${fs.readFileSync(list, 'utf8')}`);
}
for (const failure of failures) process.stdout.write(`\n${failure}\n`);
process.stdout.write(`${passed} passed, ${failed} failed\n`);
process.exitCode = failed > 0 || passed === 0 ? 1 : 0;

/** What failed in a file: its tests by name, or why it could not be run. */
function failuresOf({ name, status, message, assertionResults }) {
  const file = path.relative(process.cwd(), name);
  const tests = assertionResults
    .filter((one) => one.status === 'failed')
    .map((one) => `FAILED ${file}: ${one.fullName}\n${beginning(one.failureMessages.join('\n'))}`);
  return tests.length > 0 || status !== 'failed' ? tests : [`FAILED ${file}\n${beginning(message ?? '')}`];
}

function beginning(text) {
  return text.split('\n').slice(0, linesOfMessage).join('\n');
}
