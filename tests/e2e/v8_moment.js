// A moment of a program for test_v8.py: writes where V8 says that it is, as JSON: function, script and
// line of each call, innermost first. Then it blocks until the test has answered with a byte.
"use strict";
const fs = require("fs");

const answer = Buffer.alloc(1);

Error.stackTraceLimit = Infinity;

function describe(error, sites) {
    return sites.filter((site) => site.getFileName() !== null || site.isEval() || site.getLineNumber() !== null)
        .filter((site) => !site.isNative() && !(site.isAsync && site.isAsync()) && !(site.getTypeName() === "WebAssembly"))
        .filter((site) => (site.getScriptNameOrSourceURL() ?? "") !== "" || site.isEval())
        .map((site) => [site.getFunctionName(), site.getScriptNameOrSourceURL(), site.getLineNumber()]);
}

function moment(label) {
    if (moment.hot)
        return 0;
    const holder = {};
    const before = Error.prepareStackTrace;
    Error.prepareStackTrace = describe;
    Error.captureStackTrace(holder, moment);
    const stack = holder.stack;
    Error.prepareStackTrace = before;
    fs.writeSync(1, JSON.stringify({ label, stack }) + "\n");
    while (fs.readSync(0, answer, 0, 1) !== 1)
        ;
    return 1;
}

moment.hot = false; // moments are skipped while code is warmed up
module.exports = moment;
