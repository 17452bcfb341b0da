/** Settings of `npm run docs`. TypeDoc needs the API of TypeScript 6, which TypeScript 7 no longer has. */
export default {
  name: 'pooled-browser',
  entryPoints: [
    'index',
    'playwright',
    'puppeteer',
    'services',
    'conformance',
    'local',
    'bullmq',
    'vitest',
    'playwright-test',
  ].map((entry) => `${entry}.ts`),
  tsconfig: 'tsconfig.json',
  out: '../reports/docs',
  readme: '../README.md',
  highlightLanguages: ['ts', 'js', 'sh', 'json', 'csv', 'diff', 'yaml', 'dockerfile', 'mermaid'],
  projectDocuments: ['../examples/**/*.md', 'README.md', 'invariants.md', '*/README.md', '../CHANGELOG.md'],
  excludeInternal: true,
  excludePrivate: true,
  excludeExternals: true,
  disableSources: true,
  // The build checks the types, with TypeScript 7.
  skipErrorChecking: true,
  treatWarningsAsErrors: true,
  validation: {
    notExported: true,
    invalidLink: true,
    invalidPath: true,
    rewrittenLink: true,
    notDocumented: true,
    unusedMergeModuleWith: true,
  },
  plugin: [titleDocuments, nameOptions, documentNestedProperties],
  // Types that compute other types, whose pages show the result, and types of internal parameters.
  intentionallyNotExported: [
    'AnyLeaseOptions',
    'AnyPooledBrowser',
    'ContextOf',
    'EventFacts',
    'FixturesOf',
    'Frame',
    'Leaser',
    'PoolSteps',
    'RecordingEnd',
    'SocketEnd',
    'WorkerBrowser',
    'StepOf',
    'WorkerState',
  ],
};

/** The title of a guide is its first heading: all files have the same name. */
function titleDocuments({ converter }) {
  converter.on('createDocument', (_context, document) => {
    const text = document.content.map((part) => part.text).join('');
    const [, title] = /^# (.+)/m.exec(text) ?? [];
    if (title) document.name = title.replaceAll('`', '');
  });
}

/** A destructured parameter has no name. */
function nameOptions({ converter }) {
  converter.on('createParameter', (_context, parameter) => {
    if (parameter.name === '__namedParameters') parameter.name = 'options';
  });
}

/** The comment of a symbol also documents the properties of a type literal in it, such as the facts of an event. */
function documentNestedProperties({ logger }) {
  const warn = logger.validationWarning.bind(logger);
  logger.validationWarning = (text, ...rest) => {
    if (!/\.__type\.\w+ \(Property\)/.test(text)) warn(text, ...rest);
  };
}
