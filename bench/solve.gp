# The growth of solve time with depth, from the "growth" figures of bench/solve.cpp. Called by solve.sh --plot.
set terminal svg size 720,420 font "sans,13" background "white"
set output output
set logscale xy
set xlabel "layers of 10 operators"
set ylabel "milliseconds"
set key left top
set grid
plot for [s in "4 9 16"] data using ($1 == s ? $2 : NaN):3 with linespoints title s." choices, layers different", \
     for [s in "4 9 16"] data using ($1 == s ? $2 : NaN):4 with linespoints dashtype 2 title s." choices, layers equal"
