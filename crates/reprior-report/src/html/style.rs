//! The style sheet: light and dark, wide and narrow, and on paper. Colours are the charts' variables.

pub(super) const SHEET: &str = "
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--page);color:var(--text);font:16px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif}
main,footer{max-width:1320px;margin:0 auto;padding:0 20px}
footer{color:var(--quiet);font-size:14px;padding-bottom:24px}
h1{font-size:28px;line-height:1.2;margin:28px 0 8px;overflow-wrap:anywhere}
h2{font-size:21px;line-height:1.3;margin:40px 0 4px}
h2.run{font-size:25px;border-top:3px solid var(--line);padding-top:20px;overflow-wrap:anywhere}
h3{font-size:16px;line-height:1.35;margin:0 0 4px}
p{margin:6px 0;max-width:80ch}
a{color:var(--series-0)}
code,pre{font-family:ui-monospace,'DejaVu Sans Mono',monospace;font-size:14px;overflow-wrap:anywhere}
pre{margin:8px 0;overflow-wrap:normal}
.sentence{font-size:18px;overflow-wrap:anywhere}
.quiet,figcaption,.missing{color:var(--quiet)}
.quiet{overflow-wrap:anywhere}
.verdict{border-left:6px solid var(--line);background:var(--box);padding:12px 18px;margin:16px 0;border-radius:4px}
.verdict h2{margin:0;font-size:20px}
.verdict ul{margin:8px 0 0;padding-left:22px}
.verdict li{max-width:85ch}
.verdict.good{border-color:var(--series-0)}
.verdict.caution{border-color:var(--series-4)}
.verdict.bad{border-color:var(--series-1)}
.sign{display:inline-block;width:1.5em;font-weight:700}
.sign.good{color:var(--series-0)}
.sign.caution{color:var(--series-4)}
.sign.bad{color:var(--series-1)}
.sign.silent{color:var(--quiet)}
.unseen{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
.pair,.items{display:grid;gap:20px;margin:16px 0}
.pair{grid-template-columns:repeat(auto-fit,minmax(min(100%,460px),1fr));gap:40px}
.items{grid-template-columns:repeat(6,1fr)}
.chart[data-row='1']{grid-column:span 6}
.chart[data-row='2']{grid-column:span 3}
.chart[data-row='3']{grid-column:span 2}
.narrow{display:none}
.pair>*,.items>*{min-width:0}
.items>.wide{grid-column:1/-1;margin:0;max-width:none}
nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:4px 20px;padding:0;margin:24px 0 0}
figure{margin:0;padding:14px 16px;border:1px solid var(--line);border-radius:6px;break-inside:avoid}
figcaption{font-size:14px;line-height:1.45}
.chart{display:flex;flex-direction:column}
.chart svg{display:block;width:100%;height:auto;padding-top:8px}
.chart details{margin-top:auto}
g.tt:hover>*{opacity:.7}
details{margin-top:8px;font-size:14px}
summary{cursor:pointer;color:var(--quiet);padding:4px 0}
.scroll{overflow:auto;max-height:420px;max-width:100%}
table{border-collapse:collapse;font-size:14px;font-variant-numeric:tabular-nums}
th,td{padding:4px 14px 4px 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}
thead th{position:sticky;top:0;background:var(--page);white-space:nowrap}
tbody th{font-weight:500}
td{white-space:nowrap}
.checks td,.checks th{white-space:normal}
.checks th{width:34%}
.checks td:first-child{padding-right:0;width:2em}
.checks{width:100%}
.checks strong{font-weight:500}
.meaning{color:var(--quiet)}
.comparison thead th{white-space:normal;vertical-align:bottom}
.verbatim{border:1px solid var(--line);border-radius:6px;padding:8px 16px}
.pictures{display:grid;gap:16px;grid-template-columns:repeat(auto-fill,minmax(130px,1fr));margin-top:12px}
.pictures img{width:96px;height:96px;object-fit:contain;image-rendering:pixelated;display:block;margin-bottom:4px;background:var(--box)}
.pictures span{display:block;font-size:13px;line-height:1.35;overflow-wrap:anywhere}
:focus-visible{outline:2px solid var(--series-0);outline-offset:2px}
@media (max-width:1000px){.chart[data-row='2']{grid-column:span 6}.chart[data-row='3']{grid-column:span 3}}
@media (max-width:700px){.items>.chart[data-row]{grid-column:span 6}.narrow{display:block}.broad{display:none}}
@media (max-width:600px){main,footer{padding:0 12px}figure{padding:10px 8px}h1{font-size:24px}.sentence{font-size:17px}}
@media print{
h2,h3,figcaption{break-after:avoid}
:root{color-scheme:light;--page:#fff;--text:#000;--quiet:#444;--line:#bbb;--box:#fff;
--series-0:#0072b2;--series-1:#d55e00;--series-2:#009e73;--series-3:#b85c92;--series-4:#e69f00;--series-5:#56b4e9;--series-6:#000}
nav,.chart details{display:none}
.scroll{max-height:none;overflow:visible}
.pair{grid-template-columns:1fr 1fr}
.chart[data-row='2'],.chart[data-row='3']{grid-column:span 3}
body{font-size:11pt}
}
";
